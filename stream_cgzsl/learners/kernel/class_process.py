"""Steps 3 to 6 of `evidence`: one Gaussian process over class means, for seen and unseen classes alike.

What attributes say of a class is the prior of its mean, its examples are noisy observations of it, and an unseen class
is one without observations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from stream_cgzsl.learners.kernel.blocks import Places, in_chunks
from stream_cgzsl.learners.kernel.evidence_state import Classes, EvidenceState
from stream_cgzsl.learners.kernel.projection import kernel, solve
from stream_cgzsl.learners.statistics.features import transformed
from stream_cgzsl.learners.whitened.space import PRIOR, TINY
from stream_cgzsl.learners.whitened.whitening import Whitening, whiten

HALF = 5.0
"""Examples at which a class has half of its weight in what is common to all classes."""

OWN = 0.2
"""Variance of what only the class itself can tell: neither its attributes nor other classes predict it."""

LEAST_ENERGY = 0.05
"""Least share of the energy of sample means that is taken to be the energy of true means, not noise."""


@dataclass(frozen=True, eq=False)
class Measures:
    """Steps 3 to 5: what all classes have in common, float64 on one device. At least one class must have examples.

    The unit of length is that of a true class mean: M has energy 1 on average, once its noise is taken off.
    """

    whitening: Whitening
    centre: torch.Tensor  # m0 [features]
    radius: float  # rad: the length of a true mean in units of the within-class spread
    noise: float  # nu: the energy of the noise of one example
    signal: float  # sb: what a class's own feature scores for it
    attribute_centre: torch.Tensor  # [attributes]
    attribute_variances: torch.Tensor  # [attributes]
    attribute_length: float  # attributes are divided by it
    vector_centre: torch.Tensor | None  # [features]: of class vectors; None where the space is not shared
    vector_gain: float  # E = (class vector - vector_centre) * vector_gain in the whitened space

    @property
    def unit(self) -> float:
        """The length of a true mean in the published space, whitened."""
        return float(self.radius * self.whitening.variance**0.5)

    def gains(self, weights: torch.Tensor) -> torch.Tensor:
        """[attributes]: by which centred attributes are multiplied; `weights` are logarithms, one per attribute."""
        weights = weights.to(self.attribute_variances)
        energy = float((2 * weights).exp() @ self.attribute_variances) / self.attribute_length**2
        gains: torch.Tensor = weights.exp() / (self.attribute_length * max(energy**0.5, TINY))
        return gains


@dataclass(frozen=True, eq=False)
class ClassProcess:
    """What episodes are made of: some classes with examples, float64 on one device."""

    measures: Measures
    counts: torch.Tensor  # n [classes]
    offsets: torch.Tensor  # [classes, features]: means less centre in the published space, at within-class variance 1
    means: torch.Tensor  # M [classes, features]: the same, whitened, at energy 1
    attributes: torch.Tensor  # a [classes, attributes]
    expected: torch.Tensor | None  # E [classes, features]: what a shared space says of a mean; None where not shared


def measured(state: EvidenceState, shared: bool, device: torch.device) -> Measures:
    """Steps 3 to 5, in three passes over the classes."""
    taught = state.places.with_examples()
    shares = _shares(torch.from_numpy(state.places.counts(taught)).to(device))

    def passed() -> Iterator[tuple[torch.Tensor, Classes]]:
        done = 0
        for places in in_chunks(taught):
            yield shares[done : done + len(places)], state.classes(places, device)
            done += len(places)

    def vectors_of(classes: Classes) -> torch.Tensor:
        return class_vectors(classes.attributes, state.transform)

    space = state.space
    zeros = torch.zeros(space.features, dtype=torch.float64, device=device)
    centre, vector_centre = zeros, zeros
    attribute_centre = torch.zeros(space.attributes, dtype=torch.float64, device=device)
    for share, classes in passed():
        centre = centre + share @ classes.means
        attribute_centre = attribute_centre + share @ classes.attributes
        if shared:
            vector_centre = vector_centre + share @ vectors_of(classes)
    centre = centre if len(taught) > 1 else zeros

    spread = 0.0
    variances = torch.zeros_like(attribute_centre)
    for share, classes in passed():
        spread += float(share @ (classes.means - centre).square().sum(dim=1))
        variances = variances + share @ (classes.attributes - attribute_centre).square()
    whitening = whiten(state.pooled(), device, prior=spread / (2 * space.features))

    energy = inverse = length = 0.0
    for share, classes in passed():
        directions = whitening.into((classes.means - centre) / whitening.variance**0.5)
        energy += float(share @ directions.square().sum(dim=1))
        inverse += float(share @ (1 / classes.counts))
        if shared:
            length += float(
                share @ torch.linalg.vector_norm(whitening.into(vectors_of(classes) - vector_centre), dim=1)
            )
    radius = max(energy - whitening.spread * inverse, LEAST_ENERGY * energy, 1e-12) ** 0.5

    lengths = squares = 0.0
    everyone = state.places.all()
    for places in in_chunks(everyone):
        classes = state.classes(places, device)
        squares += float(classes.attributes.square().sum()) / len(everyone)
        if shared and length < TINY:
            whitened = whitening.into(vectors_of(classes) - vector_centre)
            lengths += float(torch.linalg.vector_norm(whitened, dim=1).sum()) / len(everyone)
    return Measures(
        whitening=whitening,
        centre=centre,
        radius=radius,
        noise=whitening.spread / radius**2,
        signal=radius * whitening.gain / (whitening.features + spread / whitening.variance) ** 0.5,
        attribute_centre=attribute_centre,
        attribute_variances=variances,
        attribute_length=max(float(variances.sum()) ** 0.5, TINY * squares**0.5, 1e-30),
        vector_centre=vector_centre if shared else None,
        vector_gain=PRIOR / max(length if length >= TINY else lengths, TINY),
    )


def class_process(state: EvidenceState, measures: Measures, places: Places) -> ClassProcess:
    """The classes at these places, all of them with examples."""
    classes = state.classes(places, measures.centre.device)
    whitening = measures.whitening
    offsets = (classes.means - measures.centre) / whitening.variance**0.5
    expected = None
    if measures.vector_centre is not None:
        vectors = class_vectors(classes.attributes, state.transform)
        expected = whitening.into(vectors - measures.vector_centre) * measures.vector_gain
    return ClassProcess(
        measures=measures,
        counts=classes.counts,
        offsets=offsets,
        means=whitening.into(offsets) / measures.radius,
        attributes=(classes.attributes - measures.attribute_centre) / measures.attribute_length,
        expected=expected,
    )


def class_vectors(attributes: torch.Tensor, transform: str) -> torch.Tensor:
    """Attributes as features, where the space is shared: [classes, features] float64."""
    return transformed(attributes.cpu().numpy(), transform).to(attributes.device)


def _shares(counts: torch.Tensor) -> torch.Tensor:
    """The weight of each class in what is common to all, summing to 1; many examples count little more."""
    shares = counts / (counts + HALF)
    return shares / shares.sum()


def regression(
    attributes: torch.Tensor, has: torch.Tensor, counts: torch.Tensor, noise: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """R [classes, has], what each observed mean contributes to each class, and f [has], the share of its own.

    `attributes` are already weighted; `has` are indices of the classes with `counts` examples. Centring and scale of
    the attributes are those of these classes: R = K (K[has, has] + diag(noise / counts))^-1.
    """
    shares = _shares(counts)
    given = attributes[has]
    centre = shares @ given
    length = (shares @ (given - centre).square().sum(dim=1)).clamp_min(TINY**2).sqrt()
    everyone = (attributes - centre) / length
    own = torch.zeros(len(attributes), len(has), dtype=attributes.dtype, device=attributes.device)
    own[has, torch.arange(len(has), device=has.device)] = OWN
    covariances = kernel(everyone, everyone[has]) + own
    matrix = covariances[has] + torch.diag(noise / counts)
    r = solve(matrix, covariances.T).T
    return r, r[has].diagonal()
