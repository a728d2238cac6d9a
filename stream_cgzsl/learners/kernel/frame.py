"""A frame: all that updates take as given. It is computed from the state at a refresh, and frozen until the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import torch

from stream_cgzsl.learners.interface import Snapshot
from stream_cgzsl.learners.kernel.blocks import Places
from stream_cgzsl.learners.kernel.class_process import OWN, Measures, class_vectors
from stream_cgzsl.learners.kernel.evidence_state import Classes, EvidenceState
from stream_cgzsl.learners.kernel.projection import RBF, kernel
from stream_cgzsl.learners.numerics.triangular import inverse_lower, mirrored, times_lower_transposed, triangle
from stream_cgzsl.learners.whitened.publication import EXPONENT, LEAN
from stream_cgzsl.learners.whitened.space import TINY
from stream_cgzsl.schemas import Array

JITTER = 1e-6
"""Added to the kernel of the landmarks, in units of its mean diagonal, so that equal descriptions do no harm."""

LEAST_COUNT = 1e-30
"""A count may fade, but not to nothing."""


class Observations(NamedTuple):
    """Classes in coordinates of the landmarks. A class mean is E + phi . w + its own part of variance delta.

    `precision` is that of what its examples say of phi . w: 1 / (delta + nu / n), and 0 without any.
    """

    phi: torch.Tensor  # [classes, landmarks]
    delta: torch.Tensor  # [classes]
    precision: torch.Tensor  # [classes]
    expected: torch.Tensor  # E [classes, features], or a zero
    targets: torch.Tensor  # t = mean - m0 - E [classes, features], 0 without examples

    @property
    def pull(self) -> torch.Tensor:
        """[classes, features]: precision times target."""
        return self.precision[:, None] * self.targets


@dataclass(frozen=True, eq=False)
class Frame:
    """Class quantities are in the published feature space, as offsets from `centre`; float64 on one device."""

    centre: torch.Tensor  # m0 [features]
    metric: torch.Tensor  # [features, features]: P metric P' is |P|^2 in the whitened space
    attribute_centre: torch.Tensor  # [attributes]
    attribute_gains: torch.Tensor  # [attributes]
    vector_centre: torch.Tensor  # [features], or empty where the space is not shared
    landmarks: torch.Tensor  # [landmarks, attributes], scaled
    inverse: torch.Tensor  # [landmarks, landmarks]: the inverse of the Cholesky factor of their kernel
    transform: str
    noise: float  # nu
    signal: float  # sb
    offset: float  # b
    gain: float  # of vectors
    vector_gain: float
    divisor: float  # all published scores are divided by it
    calibration: Mapping[str, Any]

    def __post_init__(self) -> None:
        """In one layout, because products differ by rounding between layouts."""
        for name, value in vars(self).items():
            if isinstance(value, torch.Tensor):
                object.__setattr__(self, name, value.contiguous())

    def observed(self, classes: Classes) -> Observations:
        points = (classes.attributes - self.attribute_centre) * self.attribute_gains
        phi = times_lower_transposed(kernel(points, self.landmarks), self.inverse)
        prior = (1 - RBF) * points.square().sum(dim=1) + RBF
        delta = OWN + (prior - phi.square().sum(dim=1)).clamp_min(0)
        taught = classes.counts > 0
        precision = torch.where(taught, 1 / (delta + self.noise / classes.counts.clamp_min(LEAST_COUNT)), 0.0)
        expected = torch.zeros((), dtype=torch.float64, device=phi.device)
        if len(self.vector_centre):
            vectors = class_vectors(classes.attributes, self.transform)
            expected = (vectors - self.vector_centre) * self.vector_gain
        targets = torch.where(taught[:, None], classes.means - self.centre - expected, 0.0)
        return Observations(phi, delta, precision, expected, targets)

    def published(self, projections: torch.Tensor, decided: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Vectors and biases of classes at P, where their own examples decide f: the usual score form."""
        directions = projections @ self.metric
        lengths = (directions * projections).sum(dim=1).clamp_min(TINY**2).sqrt()
        biases = -LEAN * self.signal * lengths ** (2 - EXPONENT) - self.offset * decided.square()
        vectors = directions * (self.gain / self.divisor * lengths**-EXPONENT)[:, None]
        return vectors, biases / self.divisor

    # ---- snapshots

    def snapshot(self) -> Snapshot:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: value.cpu().numpy() for name, value in values.items() if isinstance(value, torch.Tensor)}
        arrays |= {"metric": triangle(arrays["metric"]), "inverse": triangle(arrays["inverse"].T)}
        return Snapshot(arrays, {name: value for name, value in values.items() if name not in arrays})

    @classmethod
    def restore(cls, snapshot: Snapshot, device: torch.device) -> Frame:
        arrays = dict(snapshot.arrays)
        arrays["metric"] = mirrored(arrays["metric"], len(arrays["centre"]))
        arrays["inverse"] = np.tril(mirrored(arrays["inverse"], len(arrays["landmarks"])))
        values: dict[str, Any] = {**tensors(arrays, device), **snapshot.meta}
        return cls(**values)


def tensors(arrays: Mapping[str, Array], device: torch.device) -> dict[str, torch.Tensor]:
    """Copies, in torch's own memory."""
    return {name: torch.from_numpy(np.array(array)).to(device, copy=True) for name, array in arrays.items()}


def framed(
    state: EvidenceState,
    measures: Measures,
    weights: torch.Tensor,
    offset: float,
    landmarks: Places,
    calibration: Mapping[str, Any],
) -> Frame:
    """With these attribute weights (logarithms), and with the classes at these places as landmarks."""
    whitening, device = measures.whitening, measures.centre.device
    gains = measures.gains(weights)
    points = (state.classes(landmarks, device).attributes - measures.attribute_centre) * gains
    products = kernel(points, points)
    products.diagonal().add_(JITTER * float(products.diagonal().mean()))
    metric = (whitening.out_of(whitening.root.T) / measures.unit**2).triu()  # root' root
    return Frame(
        centre=measures.centre,
        metric=metric + metric.triu(1).T,
        attribute_centre=measures.attribute_centre,
        attribute_gains=gains,
        vector_centre=measures.centre[:0] if measures.vector_centre is None else measures.vector_centre,
        landmarks=points,
        inverse=inverse_lower(torch.linalg.cholesky(products)),
        transform=state.transform,
        noise=measures.noise,
        signal=measures.signal,
        offset=offset,
        gain=measures.unit * whitening.gain,
        vector_gain=measures.vector_gain * measures.unit,
        divisor=1.0,
        calibration=calibration,
    )


def chosen(state: EvidenceState, most: int) -> Places:
    """At most so many classes with examples, in order of place: those whose ids have the smallest hashes."""
    places = state.places.with_examples()
    if len(places) <= most:
        return places
    hashes = [blake2b(class_id.encode(), digest_size=16).digest() for class_id in state.places.ids(places)]
    order = sorted(range(len(places)), key=hashes.__getitem__)
    return np.sort(places[order[:most]])
