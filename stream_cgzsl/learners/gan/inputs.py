"""The inputs of G and D in the whitened space, and the maps into it and back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.batches import SeenFirst
from stream_cgzsl.learners.gan.networks import TwoLayers
from stream_cgzsl.learners.whitened.space import PRIOR, WhitenedSpace

MOST_VARIANCE = 100.0
"""Most variance of a feature inside its class, in units of the squared length of a class mean."""

MOST_LENGTH = 10.0
"""Most length of attributes, over all classes, in units of their length over the seen ones."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of the networks, float32, classes in order of id: attributes of unit variance, and the prior."""

    attributes: Tensor  # [classes, attributes]
    prior: Tensor | None  # [classes, features]: what a shared space expects of a class mean

    @classmethod
    def of(cls, space: WhitenedSpace) -> Inputs:
        length = float(space.attributes.square().sum(1).mean().sqrt())
        scale = space.attributes.shape[1] ** 0.5 / max(1.0, length / MOST_LENGTH)
        attributes = scale * space.attributes
        prior = None if space.prior is None else (PRIOR * space.prior).to(torch.float32)
        return cls(attributes.to(torch.float32), prior)

    def __getitem__(self, classes: Tensor) -> Inputs:
        return Inputs(self.attributes[classes], None if self.prior is None else self.prior[classes])

    def through(self, network: TwoLayers, z: Tensor | None = None) -> Tensor:
        """[rows, features]: D's projections, or G's features where there is noise z [rows, attributes]."""
        x = self.attributes if z is None else torch.cat((z, self.attributes), dim=1)
        y: Tensor = network(x)
        return y if self.prior is None else y + self.prior


class WhitenedClasses:
    """The classes of a window for training, in the order of `places`."""

    def __init__(self, space: WhitenedSpace, neighbours: int) -> None:
        self.places = SeenFirst.of(space.seen)
        self.inputs = Inputs.of(space)[self.places.order]
        self.means = space.means.to(torch.float32)  # [seen, F]
        positions, self.similarity, self.nearness = losses.neighbours(
            self.inputs.attributes, self.places.seen, neighbours
        )
        self.near = losses.unit(self.means)[positions]  # [C, n, F]
        self.variance = within_class_variance(space).to(torch.float32)  # [F]


def within_class_variance(space: WhitenedSpace) -> Tensor:
    """[features]: of each coordinate of a feature, where class means have length 1."""
    w = space.whitening
    # the diagonal of root S root', with S = (Sigma - alpha I) / (1 - alpha) and root Sigma root' = I
    whitened = (1 - w.alpha * w.root.square().sum(1)).clamp_min(0) / max(1 - w.alpha, 1e-12)
    return whitened / max(space.radius**2, float(whitened.sum()) / MOST_VARIANCE, 1e-12)


def into_space(space: WhitenedSpace, x: Tensor) -> Tensor:
    """[rows, features] published, float32 -> whitened, in units of the published features."""
    rows: Tensor = (x - space.centre.to(x.dtype)) @ space.whitening.root.to(x.dtype).T
    return rows


def published_directions(space: WhitenedSpace) -> Tensor:
    """[features, features] float32: G's features times this are published features less their centre."""
    w = space.whitening
    sigma = (1 - w.alpha) * w.covariance()
    sigma.diagonal().add_(w.alpha)
    scale: float = space.radius * w.variance**0.5
    back: Tensor = w.root.to(torch.float32) @ sigma.to(torch.float32)  # root^-T, since root Sigma root' = I
    return scale * back
