"""Step 8: seen classes are hidden in turn and must be recognised, among all, from what attributes say of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from stream_cgzsl.learners.draws import Draws
from stream_cgzsl.learners.interface import Monitor, Progress
from stream_cgzsl.learners.projection import EXPONENT, LEAN, PRIOR, RBF, regression
from stream_cgzsl.learners.standard import TINY, Standard

STEPS = 50
BATCH = 256
RATE = 0.02
SHARPNESS = 30.0
OFFSET = 0.1
FEWEST = 4
POOL = 3200
"""Rows of noise, used four times in the course of the steps, twice with either sign and each time for other classes."""


@dataclass(frozen=True)
class Recipe:
    """The ingredients that can be left out, each with the value the method gives it."""

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


class _Episode:
    """Everything training needs, as products between class means (and class vectors): C x C numbers, not C x D."""

    def __init__(self, standard: Standard, recipe: Recipe, generator: torch.Generator) -> None:
        self.recipe = recipe
        self.signal = standard.signal
        self.attributes = standard.attributes[standard.seen].to(torch.float32)  # [C, attributes]
        means = standard.means
        self.classes = len(means)
        expected = None if standard.prior is None else recipe.prior * standard.prior[standard.seen]
        targets = means if expected is None else means - expected
        directions = targets if expected is None else torch.cat([targets, expected])
        self.draws = Draws(standard, directions, POOL, generator)
        gram = (directions @ directions.T).to(torch.float32)
        self.lengths = torch.linalg.vector_norm(means, dim=1).to(torch.float32).clamp_min(TINY)  # [C]
        self.gram = gram[: self.classes, : self.classes]  # [C, C]
        self.cross = gram[self.classes :, : self.classes] if expected is not None else None  # [C, C]
        self.expected = gram.diagonal()[self.classes :] if expected is not None else None  # [C]

    def loss(
        self,
        weights: torch.Tensor,
        sharpness: torch.Tensor,
        offset: torch.Tensor,
        keep: torch.Tensor,
        rest: torch.Tensor,
        labels: torch.Tensor,
        first: int,
    ) -> torch.Tensor:
        """Cross-entropy of draws of `labels` among keep and rest, in this order; `labels` are positions in it."""
        c, recipe = self.classes, self.recipe
        products = self.draws.take(torch.cat([keep, rest])[labels], first)
        contributions = regression(self.attributes * weights.exp(), keep, rest, recipe.rbf)  # [rest, keep]
        kept, hidden = products[:, keep], products[:, keep] @ contributions.T  # [batch, keep], [batch, rest]
        spread = contributions @ self.gram[keep][:, keep]
        energy = (spread * contributions).sum(dim=1)
        if self.cross is not None and self.expected is not None:
            kept = kept + products[:, c + keep]
            hidden = hidden + products[:, c + rest]
            energy = energy + 2 * (contributions * self.cross[rest][:, keep]).sum(dim=1) + self.expected[rest]
        lengths = torch.cat([self.lengths[keep], energy.clamp_min(TINY**2).sqrt()])
        scores = torch.cat([kept, hidden], dim=1) / lengths**recipe.exponent
        scores = scores - recipe.lean * self.signal * lengths ** (2 - recipe.exponent)
        scores = scores - offset * (torch.arange(c, device=scores.device) < len(keep))
        return F.cross_entropy(sharpness.exp() * scores, labels)


def train(standard: Standard, recipe: Recipe, generator: torch.Generator, monitor: Monitor) -> Trained:
    """From scratch at every window: nothing of an earlier one is needed. With fewer than 4 classes nothing is learned."""
    device = standard.means.device
    weights = torch.zeros(standard.attributes.shape[1], device=device, requires_grad=recipe.weigh)
    classes = len(standard.means)
    if classes < FEWEST:
        return Trained(weights.detach(), OFFSET)
    episode = _Episode(standard, recipe, generator)
    sharpness = torch.tensor(SHARPNESS, device=device).log().requires_grad_()
    offset = torch.tensor(OFFSET, device=device, requires_grad=True)
    hidden = min(max(2, round(classes / 4)), classes - 2)
    kept = classes - hidden
    optimiser = torch.optim.Adam([p for p in (weights, sharpness, offset) if p.requires_grad], lr=RATE)
    for step in range(STEPS):
        monitor.check()
        order = torch.randperm(classes, generator=generator).to(device)
        labels = torch.cat(
            [
                torch.randint(kept, classes, (BATCH // 2,), generator=generator),
                torch.randint(kept, (BATCH - BATCH // 2,), generator=generator),
            ]
        ).to(device)
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, 2 * (1 - step / STEPS))
        optimiser.zero_grad()
        loss = episode.loss(weights, sharpness, offset, order[:kept], order[kept:], labels, step * BATCH)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        monitor.progress(Progress(step + 1, STEPS, {"rcl": float(loss.detach())}))
    return Trained(weights.detach(), float(offset))
