"""Step 8: seen classes are hidden in turn and must be recognised, among all, from what attributes say of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F

from stream_cgzsl.learners.adam import Adam
from stream_cgzsl.learners.interface import Monitor, Progress
from stream_cgzsl.learners.projection import EXPONENT, LEAN, PRIOR, RBF, regression
from stream_cgzsl.learners.standard import TINY, Standard
from stream_cgzsl.learners.threads import one_thread

STEPS = 50
BATCH = 256
RATE = 0.02
SHARPNESS = 30.0
OFFSET = 0.1

FEWEST = 4
"""With fewer classes nothing is learned: the offset would drift."""

SMALL = 1024
"""Up to so many classes an episode's products are too small to share among threads."""

MOST = 2048
"""Classes that take part in an episode; of more, each episode takes as many at random, so that a step stays bounded."""


@dataclass(frozen=True)
class Recipe:
    """The ingredients that can be left out, each as the method has it."""

    exponent: float = EXPONENT
    lean: float = LEAN
    prior: float = PRIOR
    rbf: float = RBF
    weigh: bool = True


@dataclass(frozen=True, eq=False)
class Trained:
    """What training finds: a logarithmic weight for each attribute, and how much less seen classes answer for."""

    weights: torch.Tensor  # [attributes] float32
    offset: float


class Source(Protocol):
    """Where training rows come from, met as their products with the directions it was made for."""

    def take(self, labels: torch.Tensor, turn: int) -> torch.Tensor:
        """[labels, directions]: a standardised feature of each label's class; batch number `turn`."""


class Episodes:
    """The C seen classes, as products between their means (and class vectors): C x C numbers, not C x features.

    With E = 0.5 F what is expected of the means, T = M - E what attributes must tell and R the regression, a
    hidden class is at P = E + R T. Scores need x.P = x.E + R (x.T) and |P|^2 = |E|^2 + 2 R (E.T) + R (T.T') R'.
    """

    def __init__(self, standard: Standard, recipe: Recipe, source: Callable[[torch.Tensor], Source]) -> None:
        seen, means = standard.seen, standard.means
        self.recipe = recipe
        self.signal = standard.signal
        self.classes = len(means)
        self.attributes = standard.attributes[seen].to(torch.float32)  # [C, attributes]
        self.lengths = means.square().sum(dim=1).to(torch.float32).clamp_min(TINY**2).sqrt()  # [C]
        expected = None if standard.prior is None else recipe.prior * standard.prior[seen]
        targets = means if expected is None else means - expected
        directions = targets if expected is None else torch.cat([targets, expected])
        self.source = source(directions)
        self.products = (directions @ targets.T).to(torch.float32)  # [C or 2 C, C]: T.T', and E.T' below
        self.expected = None if expected is None else expected.square().sum(dim=1).to(torch.float32)  # [C]

    def loss(
        self,
        weights: torch.Tensor,
        sharpness: torch.Tensor,
        offset: torch.Tensor,
        order: torch.Tensor,
        kept: int,
        labels: torch.Tensor,
        turn: int,
    ) -> torch.Tensor:
        """Cross-entropy of a batch of draws among the classes of `order`, the first `kept` known, the others hidden.

        `labels` are positions in `order`; `sharpness` is a logarithm.
        """
        recipe, keep, rest = self.recipe, order[:kept], order[kept:]
        products = self.source.take(order[labels], turn)  # [batch, C or 2 C]
        told = products[:, keep]  # x.T
        r = regression(self.attributes * weights.exp(), keep, rest, recipe.rbf)  # [rest, keep]
        spread = r.detach() @ self.products[keep[:, None], keep]  # [rest, keep]
        energy = ((2 * r - r.detach()) * spread).sum(dim=1)  # R (T.T') R', and its derivative, from one product
        hidden = told @ r.T  # [batch, rest]
        if self.expected is not None:
            below = rest + self.classes
            energy = energy + 2 * (r * self.products[below[:, None], keep]).sum(dim=1) + self.expected[rest]
            hidden = hidden + products[:, below]
            told = told + products[:, keep + self.classes]
        lengths = torch.cat([self.lengths[keep], energy.clamp_min(TINY**2).sqrt()])
        biases = -recipe.lean * self.signal * lengths ** (2 - recipe.exponent)
        biases = torch.cat([biases[:kept] - offset, biases[kept:]])
        scores = torch.cat([told, hidden], dim=1) * lengths**-recipe.exponent + biases  # [batch, order]
        return F.cross_entropy(sharpness.exp() * scores, labels)


def train(
    standard: Standard,
    recipe: Recipe,
    source: Callable[[torch.Tensor], Source],
    generator: torch.Generator,
    monitor: Monitor,
) -> Trained:
    """From scratch at every window: nothing of an earlier one is needed. `source` is given directions [k, features]."""
    device = standard.means.device
    weights = torch.zeros(standard.attributes.shape[1], device=device)
    classes = len(standard.means)
    if classes < FEWEST:
        return Trained(weights, OFFSET)
    sharpness = torch.tensor(SHARPNESS, device=device).log()
    offset = torch.tensor(OFFSET, device=device)
    parameters = [weights, sharpness, offset] if recipe.weigh else [sharpness, offset]
    optimiser = Adam(parameters)
    episodes = Episodes(standard, recipe, source)
    present = min(classes, MOST)
    kept = present - min(max(2, round(present / 4)), present - 2)
    with one_thread(small=classes <= SMALL):
        for step in range(STEPS):
            monitor.check()
            order = torch.randperm(classes, generator=generator)[:present].to(device)
            half = BATCH // 2
            hidden_labels = torch.randint(kept, present, (half,), generator=generator)
            labels = torch.cat([hidden_labels, torch.randint(kept, (BATCH - half,), generator=generator)]).to(device)
            loss = episodes.loss(weights, sharpness, offset, order, kept, labels, step)
            optimiser.step(torch.autograd.grad(loss, parameters), RATE * min(1.0, 2 * (1 - step / STEPS)))
            monitor.progress(Progress(step + 1, STEPS, {"rcl": float(loss.detach())}))
    return Trained(weights.detach(), float(offset.detach()))
