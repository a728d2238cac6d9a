"""Steps 3 to 7 of `evidence`: one Gaussian process over class means, for seen and unseen classes alike.

What attributes say of a class is the prior of its mean, its examples are noisy observations of it, and an unseen class
is one without observations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from stream_cgzsl.learners.kernel.projection import kernel, solve
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.shared_space import class_vectors
from stream_cgzsl.learners.whitened.publication import Head, head
from stream_cgzsl.learners.whitened.space import PRIOR, TINY
from stream_cgzsl.learners.whitened.whitening import Whitening, whiten

HALF = 5.0
"""Examples at which a class has half of its weight in what is common to all classes."""

OWN = 0.2
"""Variance of what only the class itself can tell: neither its attributes nor other classes predict it."""

LEAST_ENERGY = 0.05
"""Least share of the energy of sample means that is taken to be the energy of true means, not noise."""


@dataclass(frozen=True, eq=False)
class ClassProcess:
    """Everything the process rests on, float64 on one device. Classes are in order of id, seen ones among them.

    The unit of length is that of a true class mean: M has energy 1 on average, once its noise is taken off.
    """

    whitening: Whitening
    seen: torch.Tensor  # [classes] bool
    counts: torch.Tensor  # n [seen]
    centre: torch.Tensor  # m0 [features]
    offsets: torch.Tensor  # [seen, features]: means less centre in the published space, at within-class variance 1
    means: torch.Tensor  # M [seen, features]: the same, whitened, at energy 1
    attributes: torch.Tensor  # a [classes, attributes]
    expected: torch.Tensor | None  # E [classes, features]: what a shared space says of a mean; None where not shared
    radius: float  # rad: the length of a true mean in units of the within-class spread
    noise: float  # nu: the energy of the noise of one example
    signal: float  # sb: what a class's own feature scores for it


class Posterior(NamedTuple):
    """The process after its observations, for every class."""

    projections: torch.Tensor  # P [classes, features]
    decided: torch.Tensor  # f [classes]: how far a class's own examples decide, 0 without any, towards 1 with many


def class_process(
    statistics: ClassStatistics, shared: bool, device: torch.device, whitening: Whitening | None = None
) -> ClassProcess:
    """Steps 3 to 5. At least one class must be seen. `whitening` may be given if it is that of the same statistics."""
    seen = torch.from_numpy(statistics.seen).to(device)
    means = torch.from_numpy(statistics.means).to(device)
    counts = torch.from_numpy(statistics.counts).to(device)
    weights = class_weights(counts)
    centre = weights @ means if len(means) > 1 else torch.zeros_like(means[0])
    deviations = means - centre
    spread = float(weights @ deviations.square().sum(dim=1))
    whitening = whitening or whiten(statistics.moments, device, prior=spread / (2 * means.shape[1]))
    offsets = deviations / whitening.variance**0.5
    directions = whitening.into(offsets)
    energies = directions.square().sum(dim=1)
    energy = float(weights @ energies)
    radius = max(energy - whitening.spread * float(weights @ (1 / counts)), LEAST_ENERGY * energy, 1e-12) ** 0.5
    return ClassProcess(
        whitening=whitening,
        seen=seen,
        counts=counts,
        centre=centre,
        offsets=offsets,
        means=directions / radius,
        attributes=_scaled(torch.from_numpy(statistics.attributes).to(device), seen, weights),
        expected=_expected(statistics, seen, weights, whitening) if shared else None,
        radius=radius,
        noise=whitening.spread / radius**2,
        signal=radius * whitening.gain / (whitening.features + spread / whitening.variance) ** 0.5,
    )


def class_weights(counts: torch.Tensor) -> torch.Tensor:
    """[seen]: the weight of each class in what is common to all, summing to 1; many examples count little more."""
    weights = counts / (counts + HALF)
    return weights / weights.sum()


def _scaled(attributes: torch.Tensor, seen: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Attributes centred on the seen classes, over the root mean square of their lengths."""
    centred = attributes - weights @ attributes[seen]
    least = TINY * float(attributes.square().sum(dim=1).mean().sqrt())
    scaled: torch.Tensor = centred / max(float(weights @ centred[seen].square().sum(dim=1)) ** 0.5, least, 1e-30)
    return scaled


def _expected(
    statistics: ClassStatistics, seen: torch.Tensor, weights: torch.Tensor, whitening: Whitening
) -> torch.Tensor:
    """E: half of the class vectors as if they were class means, over their mean length."""
    vectors = torch.from_numpy(class_vectors(statistics)).to(seen.device)
    expected = whitening.into(vectors - weights @ vectors[seen])
    lengths = torch.linalg.vector_norm(expected, dim=1)
    length = float(weights @ lengths[seen])
    scaled: torch.Tensor = PRIOR * expected / max(length if length >= TINY else float(lengths.mean()), TINY)
    return scaled


def regression(
    attributes: torch.Tensor, has: torch.Tensor, counts: torch.Tensor, noise: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """R [classes, has], what each observed mean contributes to each class, and f [has], the share of its own.

    `attributes` are already weighted; `has` are indices of the classes with `counts` examples. Centring and scale of
    the attributes are those of these classes: R = K (K[has, has] + diag(noise / counts))^-1.
    """
    weights = class_weights(counts)
    given = attributes[has]
    centre = weights @ given
    length = (weights @ (given - centre).square().sum(dim=1)).clamp_min(TINY**2).sqrt()
    everyone = (attributes - centre) / length
    own = torch.zeros(len(attributes), len(has), dtype=attributes.dtype, device=attributes.device)
    own[has, torch.arange(len(has), device=has.device)] = OWN
    covariances = kernel(everyone, everyone[has]) + own
    matrix = covariances[has] + torch.diag(noise / counts)
    r = solve(matrix, covariances.T).T
    return r, r[has].diagonal()


def posterior(process: ClassProcess, weights: torch.Tensor) -> Posterior:
    """Step 6 for every class: P = E + R (M - E). `weights` are logarithms, one per attribute."""
    has = process.seen.nonzero()[:, 0]
    r, share = regression(process.attributes * weights.exp(), has, process.counts, process.noise)
    decided = r.new_zeros(len(process.seen))
    decided[has] = share
    if process.expected is None:
        return Posterior(r @ process.means, decided)
    return Posterior(process.expected + r @ (process.means - process.expected[has]), decided)


def scores_of(found: Posterior, signal: float, offset: float) -> Head:
    """Step 7: the usual score form; a class scores lower the further its own examples decide."""
    weights, biases = head(found.projections, signal)
    return Head(weights, biases - offset * found.decided.square())
