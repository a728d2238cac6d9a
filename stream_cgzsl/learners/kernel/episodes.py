"""Step 8, training by episodes: seen classes are hidden in turn and must be recognised from their attributes alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F

from stream_cgzsl.learners.interface import Monitor, Progress
from stream_cgzsl.learners.kernel.projection import RBF, regression
from stream_cgzsl.learners.numerics.adam import Adam
from stream_cgzsl.learners.numerics.threads import one_thread
from stream_cgzsl.learners.whitened.publication import EXPONENT, LEAN
from stream_cgzsl.learners.whitened.space import PRIOR, TINY, WhitenedSpace

STEPS = 50
BATCH = 256
RATE = 0.02
SHARPNESS = 30.0
OFFSET = 0.1

FEWEST = 4
"""With fewer classes nothing is trained: the offset would drift."""

SMALL = 1024
"""Up to this many classes, an episode's products are too small to share among threads."""

MOST = 2048
"""Most classes in an episode; of more, each episode takes as many at random, so that the cost of a step is bounded."""


@dataclass(frozen=True)
class Recipe:
    """The parts of the method that can be switched off, with their defaults."""

    exponent: float = EXPONENT
    lean: float = LEAN
    prior: float = PRIOR
    rbf: float = RBF
    weigh: bool = True


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of training: a logarithmic weight per attribute, and the offset of seen classes."""

    weights: torch.Tensor  # [attributes] float32
    offset: float


class Rows(Protocol):
    """Where training rows come from, as their products with the directions it was made for."""

    def take(self, labels: torch.Tensor, turn: int) -> torch.Tensor:
        """[labels, directions]: a whitened feature of each label's class, for batch number `turn`."""


class Episodes:
    """The C seen classes, as products between their means (and class vectors): C x C numbers, not C x features.

    With E = 0.5 F what is expected of the means, T = M - E what attributes must predict and R the regression, a
    hidden class is at P = E + R T. Scores need x.P = x.E + R (x.T) and |P|^2 = |E|^2 + 2 R (E.T) + R (T.T') R'.
    """

    def __init__(self, space: WhitenedSpace, recipe: Recipe) -> None:
        seen, means = space.seen, space.means
        self.recipe = recipe
        self.signal = space.signal
        self.classes = len(means)
        self.attributes = space.attributes[seen].to(torch.float32)  # [C, attributes]
        self.lengths = means.square().sum(dim=1).to(torch.float32).clamp_min(TINY**2).sqrt()  # [C]
        expected = None if space.prior is None else recipe.prior * space.prior[seen]
        targets = means if expected is None else means - expected
        self.directions = targets if expected is None else torch.cat([targets, expected])  # [C or 2 C, features]
        self.products = (self.directions @ targets.T).to(torch.float32)  # [C or 2 C, C]: T.T', and E.T' below
        self.expected = None if expected is None else expected.square().sum(dim=1).to(torch.float32)  # [C]

    def loss(
        self,
        weights: torch.Tensor,
        sharpness: torch.Tensor,
        offset: torch.Tensor,
        order: torch.Tensor,
        kept: int,
        labels: torch.Tensor,
        products: torch.Tensor,
    ) -> torch.Tensor:
        """Cross-entropy of a batch among the classes of `order`: the first `kept` are known, the others hidden.

        `labels` are positions in `order`, `products` [batch, C or 2 C] those of the rows with the directions;
        `sharpness` is a logarithm.
        """
        recipe, keep, rest = self.recipe, order[:kept], order[kept:]
        known = products[:, keep]  # x.T
        r = regression(self.attributes * weights.exp(), keep, rest, recipe.rbf)  # [rest, keep]
        spread = r.detach() @ self.products[keep[:, None], keep]  # [rest, keep]
        energy = ((2 * r - r.detach()) * spread).sum(dim=1)  # R (T.T') R', and its derivative, from one product
        hidden = known @ r.T  # [batch, rest]
        if self.expected is not None:
            below = rest + self.classes
            energy = energy + 2 * (r * self.products[below[:, None], keep]).sum(dim=1) + self.expected[rest]
            hidden = hidden + products[:, below]
            known = known + products[:, keep + self.classes]
        lengths = torch.cat([self.lengths[keep], energy.clamp_min(TINY**2).sqrt()])
        biases = -recipe.lean * self.signal * lengths ** (2 - recipe.exponent)
        biases = torch.cat([biases[:kept] - offset, biases[kept:]])
        scores = torch.cat([known, hidden], dim=1) * lengths**-recipe.exponent + biases  # [batch, order]
        return F.cross_entropy(sharpness.exp() * scores, labels)


def train(episodes: Episodes, rows: Rows, rng: torch.Generator, monitor: Monitor) -> Trained:
    """From scratch at every window, so nothing of an earlier one is needed. There must be at least `FEWEST` classes."""
    device, classes = episodes.attributes.device, episodes.classes
    weights = torch.zeros(episodes.attributes.shape[1], device=device)
    sharpness = torch.tensor(SHARPNESS, device=device).log()
    offset = torch.tensor(OFFSET, device=device)
    parameters = [weights, sharpness, offset] if episodes.recipe.weigh else [sharpness, offset]
    optimiser = Adam(parameters)
    present = min(classes, MOST)
    kept = present - min(max(2, round(present / 4)), present - 2)
    with one_thread(small=classes <= SMALL):
        for step in range(STEPS):
            monitor.check()
            order = torch.randperm(classes, generator=rng)[:present].to(device)
            half = BATCH // 2
            hidden_labels = torch.randint(kept, present, (half,), generator=rng)
            labels = torch.cat([hidden_labels, torch.randint(kept, (BATCH - half,), generator=rng)]).to(device)
            products = rows.take(order[labels], step)  # [batch, C or 2 C]
            loss = episodes.loss(weights, sharpness, offset, order, kept, labels, products)
            optimiser.step(torch.autograd.grad(loss, parameters), RATE * min(1.0, 2 * (1 - step / STEPS)))
            monitor.progress(Progress(step + 1, STEPS, {"rcl": float(loss.detach())}))
    return Trained(weights.detach(), float(offset.detach()))
