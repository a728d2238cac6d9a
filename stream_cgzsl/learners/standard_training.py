"""One window's training in the standardised space: the same networks and losses, and G's moments."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from stream_cgzsl.learners import losses
from stream_cgzsl.learners.networked import NetworkOptions, Networks
from stream_cgzsl.learners.standard_classes import StandardClasses
from stream_cgzsl.learners.training import descend


@dataclass(frozen=True)
class AdversarialOptions(NetworkOptions):
    """The method's constants. `rcl` counts three times in a shared space; `moments` weighs G's first and second."""

    hidden: int = 512
    learning_rate: float = 1e-3
    max_iterations: int = 100
    scale: float = 25.0
    neighbours: int = 4
    gan: float = 0.02
    rcl: float = 0.1
    snl: float = 0.001
    moments: float = 10.0

    def weights_in(self, shared: bool) -> dict[str, float]:
        """By loss term."""
        rcl = 3 * self.rcl if shared else self.rcl
        return {**self.weights, "rcl": rcl, "first_moment": self.moments, "second_moment": self.moments}


class StandardTraining:
    """Fresh optimisers and the step. G is stepped every second time."""

    def __init__(self, networks: Networks, classes: StandardClasses, options: AdversarialOptions) -> None:
        self.g, self.d = networks
        self.classes = classes
        self.options = options
        self.weights = options.weights_in(classes.inputs.prior is not None)
        self.optimise_g = torch.optim.AdamW(self.g.parameters(), lr=options.learning_rate, fused=True)
        self.optimise_d = torch.optim.AdamW(self.d.parameters(), lr=options.learning_rate, fused=True)
        self.projections = classes.inputs.through(self.d)  # [C, F]; from here on always those of the newest D

    def slow_down(self, done: float) -> None:
        """The learning rate once this share of the steps is done: constant for half of them, then linear to 0."""
        for group in (*self.optimise_g.param_groups, *self.optimise_d.param_groups):
            group["lr"] = self.options.learning_rate * min(1.0, 2 * (1 - done))

    def step(self, x: Tensor, y: Tensor, unseen: Tensor, z: Tensor, move_g: bool) -> dict[str, Tensor]:
        """x: [n, F] of length 1, y: [n] seen classes, unseen: [u] unseen classes, z: [2n + u, A] noise."""
        k, c, n, seen, u = self.options.scale, self.classes, len(x), self.classes.places.seen, len(unseen)
        with torch.set_grad_enabled(move_g):
            made = torch.cat((y, unseen, y) if move_g else (y, unseen))  # [2n + u] or [n + u]
            fake = c.inputs[made].through(self.g, z[: len(made)])  # [2n + u, F] or [n + u, F]
            x_seen, x_unseen = torch.split(losses.unit(fake[: n + u]), [n, u])  # [n, F], [u, F]

        p, s = self.projections, losses.unit(self.projections)  # [C, F]
        on_d = {
            "gan_d": losses.gan_projector(x, y, x_seen, y, s, signed=True),
            "rcl": losses.rcl(x, y, s[:seen], k),
            "nuclear": losses.nuclear(p[:seen], c.means),
        }
        if u:
            on_d["snl"] = losses.snl(x_unseen, unseen, s, k)
        descend(self.optimise_d, on_d, self.weights)
        self.projections = c.inputs.through(self.d)  # [C, F]: for G now, and for D's next step
        if not move_g:
            return on_d

        s = losses.unit(self.projections.detach())  # [C, F]
        fake_means = c.inputs.through(self.g, torch.zeros_like(c.inputs.attributes))  # [C, F]
        one, other = fake[:n], fake[n + u :]  # [n, F], [n, F]: two draws of the same classes
        on_g = {
            "gan_g": losses.gan_generator(x_seen, y, s, signed=True),
            "pcl": losses.pcl(x_seen, y, s[:seen], k),
            "sal": losses.sal(fake_means, c.near, c.similarity, c.nearness, self.options.tolerance),
            "first_moment": losses.first_moment(one, other, c.means[y]),
            "second_moment": losses.second_moment(one, other, c.variance),
        }
        descend(self.optimise_g, on_g, self.weights)
        return on_d | on_g
