"""Whether attribute vectors live in the feature space: declared, or measured on the classes seen so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.features import transformed
from stream_cgzsl.schemas import Array

CERTAIN = 3.0
"""Class vectors must align with their own means this many standard deviations better than with shuffled ones."""


@dataclass(frozen=True)
class SharedSpace:
    """The decision, why, and the alignment it rests on (None when it was declared or cannot be measured)."""

    shared: bool
    why: str
    alignment: float | None = None

    def record(self) -> dict[str, Any]:
        """For `Generation.calibration`."""
        record: dict[str, Any] = {"shared": self.shared, "shared_why": self.why}
        if self.alignment is not None:
            record["shared_alignment"] = round(self.alignment, 6)
        return record


def decide_shared(statistics: ClassStatistics) -> SharedSpace:
    """A pure function of the statistics, so nothing about it needs to be kept."""
    space = statistics.space
    if space.shared is not None and space.attributes == space.features:
        return SharedSpace(space.shared, "declared")
    if space.attributes != space.features:
        return SharedSpace(False, "dimensions differ")
    if int(statistics.seen.sum()) < 2:
        return SharedSpace(False, "too few seen classes to tell")
    found = alignment(class_vectors(statistics)[statistics.seen], statistics.means)
    return SharedSpace(found > CERTAIN, "measured", found)


def class_vectors(statistics: ClassStatistics) -> Array:
    """Attributes as features: [classes, features] float64, transformed as features are."""
    return transformed(statistics.attributes, statistics.transform).numpy()


def alignment(vectors: Array, means: Array) -> float:
    """How many standard deviations the cosines of own pairs exceed those of vectors shuffled among the classes.

    The mean and variance over all shuffles are known exactly, so none is drawn.
    """
    cosines = _centred_unit(vectors) @ _centred_unit(means).T
    classes = len(cosines)
    residual = cosines - cosines.mean(axis=0) - cosines.mean(axis=1, keepdims=True) + cosines.mean()
    deviation = float(np.sqrt(np.square(residual).sum() / (classes - 1)))
    return float(np.trace(residual)) / deviation if deviation > 1e-9 else 0.0


def _centred_unit(rows: Array) -> Array:
    centred = rows - rows.mean(axis=0)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9))
