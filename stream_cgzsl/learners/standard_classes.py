"""What G and D are fed in the standardised space, and the way there and back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from stream_cgzsl.learners import losses
from stream_cgzsl.learners.batches import SeenFirst
from stream_cgzsl.learners.networks import TwoLayers
from stream_cgzsl.learners.projection import PRIOR
from stream_cgzsl.learners.standard import Standard

NOISIEST = 100.0
"""Most variance of a feature inside its class, in units of the squared length of a class mean."""

FARTHEST = 10.0
"""Most length of attributes, over all classes, in units of their length over the seen ones."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the networks are fed, float32, classes in order of id: attributes of unit variance, and the prior."""

    attributes: Tensor  # [classes, attributes]
    prior: Tensor | None  # [classes, features]: what a shared space expects of a class mean

    @classmethod
    def of(cls, standard: Standard) -> Inputs:
        length = float(standard.attributes.square().sum(1).mean().sqrt())
        scale = standard.attributes.shape[1] ** 0.5 / max(1.0, length / FARTHEST)
        attributes = scale * standard.attributes
        prior = None if standard.prior is None else (PRIOR * standard.prior).to(torch.float32)
        return cls(attributes.to(torch.float32), prior)

    def __getitem__(self, classes: Tensor) -> Inputs:
        return Inputs(self.attributes[classes], None if self.prior is None else self.prior[classes])

    def through(self, network: TwoLayers, z: Tensor | None = None) -> Tensor:
        """[rows, features]: D's projections, or G's features where there is noise z [rows, attributes]."""
        x = self.attributes if z is None else torch.cat((z, self.attributes), dim=1)
        y: Tensor = network(x)
        return y if self.prior is None else y + self.prior


class StandardClasses:
    """The classes of a window for training, in the order of `places`."""

    def __init__(self, standard: Standard, neighbours: int) -> None:
        self.places = SeenFirst.of(standard.seen)
        self.inputs = Inputs.of(standard)[self.places.order]
        self.means = standard.means.to(torch.float32)  # [seen, F]
        positions, self.similarity, self.nearness = losses.neighbours(
            self.inputs.attributes, self.places.seen, neighbours
        )
        self.near = losses.unit(self.means)[positions]  # [C, n, F]
        self.variance = within_class_variance(standard).to(torch.float32)  # [F]


def within_class_variance(standard: Standard) -> Tensor:
    """[features]: of each coordinate of a feature, where class means have length 1."""
    w = standard.whitening
    # the diagonal of root S root', with S = (Sigma - alpha I) / (1 - alpha) and root Sigma root' = I
    whitened = (1 - w.alpha * w.root.square().sum(1)).clamp_min(0) / max(1 - w.alpha, 1e-12)
    return whitened / max(standard.radius**2, float(whitened.sum()) / NOISIEST, 1e-12)


def standardised(standard: Standard, x: Tensor) -> Tensor:
    """[rows, features] published, float32 -> standardised, in units of the published features."""
    rows: Tensor = (x - standard.centre.to(x.dtype)) @ standard.whitening.root.to(x.dtype).T
    return rows


def published_directions(standard: Standard) -> Tensor:
    """[features, features] float32: what takes G's features, times it, back to published ones less their centre."""
    w = standard.whitening
    sigma = (1 - w.alpha) * w.covariance()
    sigma.diagonal().add_(w.alpha)
    scale: float = standard.radius * w.variance**0.5
    back: Tensor = w.root.to(torch.float32) @ sigma.to(torch.float32)  # root^-T, since root Sigma root' = I
    return scale * back
