"""One window's training as the paper prints it: the classes, the losses' weights, and the step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.learners import losses
from stream_cgzsl.learners.batches import SeenFirst
from stream_cgzsl.learners.networked import NetworkOptions, Networks
from stream_cgzsl.learners.statistics import Statistics

EVERY = 10
"""Progress is told once in so many iterations."""


@dataclass(frozen=True)
class PaperOptions(NetworkOptions):
    """As printed."""

    weight_decay: float = 1e-5
    epochs: int = 50


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a window for training, in the order of `places`."""

    places: SeenFirst
    attributes: Tensor  # [classes, attributes], of length 1
    means: Tensor  # [seen, features]
    near: Tensor  # [classes, n, features]: the means of the n nearest seen classes, of length 1
    similarity: Tensor  # [classes, n]: attribute cosines with them
    nearness: Tensor  # [classes, n]: 1, or 0 where there are fewer
    signed: bool

    @classmethod
    def of(cls, statistics: Statistics, neighbours: int, device: torch.device) -> Classes:
        places = SeenFirst.of(torch.from_numpy(statistics.seen).to(device))
        attributes = attributes_of(statistics, device)[places.order]
        means = torch.from_numpy(statistics.means).to(device, torch.float32)
        positions, similarity, nearness = losses.neighbours(attributes, places.seen, neighbours)
        near = losses.unit(means)[positions]
        return cls(places, attributes, means, near, similarity, nearness, statistics.space.signed)


def attributes_of(statistics: Statistics, device: torch.device) -> Tensor:
    """[classes, attributes] float32 at length 1."""
    return losses.unit(torch.from_numpy(statistics.attributes).to(device, torch.float32))


class Training:
    """One window's training: fresh optimisers, and the step."""

    def __init__(self, networks: Networks, classes: Classes, options: PaperOptions) -> None:
        self.g, self.d = networks
        self.classes = classes
        self.options = options
        self.weights = options.weights
        self.optimise_g, self.optimise_d = (
            torch.optim.Adam(n.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay, fused=True)
            for n in networks
        )
        self.projections: Tensor = self.d(classes.attributes)  # [C, F]; from here on always those of the newest D

    def step(self, x: Tensor, y: Tensor, unseen: Tensor, z: Tensor) -> dict[str, Tensor]:
        """x: [n, F] of length 1, y: [n] seen classes, unseen: [u] unseen classes, z: [n + u, A] noise."""
        k, c, n, seen = self.options.scale, self.classes, len(x), self.classes.places.seen
        made = torch.cat((y, unseen))  # [n + u]
        fake = self.g.generate(z, c.attributes[made])  # [n + u, F]
        x_seen, x_unseen = torch.split(losses.unit(fake), [n, len(unseen)])  # [n, F], [u, F]

        p, s = self.projections, losses.unit(self.projections)  # [C, F]
        on_d = {
            "gan_d": losses.gan_projector(x, y, x_seen, y, s, c.signed),
            "rcl": losses.rcl(x, y, s[:seen], k),
            "nuclear": losses.nuclear(p[:seen], c.means),  # printed in G's loss, where nothing depends on it
        }
        if len(unseen):
            on_d["snl"] = losses.snl(x_unseen, unseen, s, k)
        descend(self.optimise_d, on_d, self.weights)

        self.projections = self.d(c.attributes)  # [C, F]: for G now, and for D's next step
        s = losses.unit(self.projections.detach())  # [C, F]
        i, fake_means = class_means(fake, made)  # [m] the classes in the batch, [m, F]
        on_g = {
            "gan_g": losses.gan_generator(x_seen, y, s, c.signed),
            "pcl": losses.pcl(x_seen, y, s[:seen], k),
            "sal": losses.sal(fake_means, c.near[i], c.similarity[i], c.nearness[i], self.options.tolerance),
        }
        descend(self.optimise_g, on_g, self.weights)
        return on_d | on_g


def descend(optimiser: torch.optim.Optimizer, terms: Mapping[str, Tensor], weights: Mapping[str, float]) -> None:
    """One step down the weighted sum of the terms; none where every weight is 0."""
    weighted = [weights[name] * term for name, term in terms.items() if weights[name]]
    if weighted:
        optimiser.zero_grad()
        torch.stack(weighted).sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def class_means(x: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct classes among [rows] and the mean of each one's rows: [m], [m, features]."""
    distinct, index = torch.unique(classes, return_inverse=True)
    members = F.one_hot(index, len(distinct)).T.to(x.dtype)  # [m, rows]
    return distinct, (members / members.sum(1, keepdim=True)) @ x
