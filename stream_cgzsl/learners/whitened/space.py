"""Steps 4 and 5: class means and attributes in the whitened space, centred on the seen classes and scaled."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.shared_space import class_vectors
from stream_cgzsl.learners.whitened.whitening import Whitening, whiten

TINY = 1e-6
"""A scale below this is not divided by."""

PRIOR = 0.5
"""In a shared space, the part of a class's own vector in what is expected of its mean."""


@dataclass(frozen=True, eq=False)
class WhitenedSpace:
    """Everything D and G work with, float64 on one device. Classes are in order of id, seen ones among them.

    `radius` is how far class means lie from the centre, in units of the within-class spread (rad).
    `signal` is what a class's own feature scores for it (sb).
    """

    whitening: Whitening
    seen: torch.Tensor  # [classes] bool
    centre: torch.Tensor  # m0 [features]
    offsets: torch.Tensor  # [seen, features]: means less centre in the published space, at within-class variance 1
    means: torch.Tensor  # M [seen, features], of mean length 1
    attributes: torch.Tensor  # a [classes, attributes]
    prior: torch.Tensor | None  # F [classes, features], of mean length 1; None where spaces are not shared
    radius: float
    signal: float


def whitened_space(statistics: ClassStatistics, shared: bool, whitening: Whitening) -> WhitenedSpace:
    """Steps 4 and 5, from the whitening of the statistics' moments (step 3). At least one class must be seen."""
    device = whitening.root.device
    seen = torch.from_numpy(statistics.seen).to(device)
    means = torch.from_numpy(statistics.means).to(device)
    centre = means.mean(dim=0) if len(means) > 1 else torch.zeros_like(means[0])
    offsets = means - centre
    directions = whitening.into(offsets)
    scale = float(torch.linalg.vector_norm(directions, dim=1).mean())
    radius = scale / whitening.variance**0.5
    energy = float(offsets.square().sum(dim=1).mean()) / whitening.variance
    length = (whitening.features + energy) ** 0.5 / whitening.gain  # g
    return WhitenedSpace(
        whitening=whitening,
        seen=seen,
        centre=centre,
        offsets=offsets / whitening.variance**0.5,
        means=directions / max(scale, TINY),
        attributes=scaled_attributes(torch.from_numpy(statistics.attributes).to(device), seen),
        prior=_prior(torch.from_numpy(class_vectors(statistics)).to(device), seen, whitening) if shared else None,
        radius=radius,
        signal=radius / length,
    )


def scaled_attributes(attributes: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """Centred on the seen classes, over the root mean square of their lengths."""
    centred = attributes - attributes[seen].mean(dim=0)
    least = TINY * float(attributes.square().sum(dim=1).mean().sqrt())
    return centred / max(float(centred[seen].square().sum(dim=1).mean().sqrt()), least, 1e-30)


def _prior(vectors: torch.Tensor, seen: torch.Tensor, whitening: Whitening) -> torch.Tensor:
    """F: class vectors as if they were class means, over their mean length."""
    prior = whitening.into(vectors - vectors[seen].mean(dim=0))
    lengths = torch.linalg.vector_norm(prior, dim=1)
    length = float(lengths[seen].mean())
    return prior / max(length if length >= TINY else float(lengths.mean()), TINY)


class SpaceCache:
    """Steps 3 to 5. Keeps the last result: training and publishing a window, and describing more classes after it, need
    only one factorisation between them.
    """

    def __init__(self, device: torch.device, symmetric: bool = False, enabled: bool = True) -> None:
        self._device = device
        self._symmetric = symmetric
        self._enabled = enabled
        self._statistics: ClassStatistics | None = None
        self._space: WhitenedSpace | None = None

    def get(self, statistics: ClassStatistics, shared: bool) -> WhitenedSpace:
        """The space of these statistics. At least one class must be seen."""
        last = self._space
        if last is not None and self._statistics is statistics and (last.prior is not None) == shared:
            return last
        scatter = statistics.moments.scatter  # a whitening depends on nothing else; class means may differ
        whitening = last.whitening if last is not None and last.whitening.moments.scatter is scatter else None
        self._space = last = None  # released before the new one is computed
        whitening = whitening or whiten(statistics.moments, self._device, self._symmetric, self._enabled)
        self._space, self._statistics = whitened_space(statistics, shared, whitening), statistics
        return self._space
