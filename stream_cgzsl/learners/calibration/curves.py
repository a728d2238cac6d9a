"""Calibration of the seen offset: accuracies as a function of it, on rows that were not trained on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stream_cgzsl.learners.interface import Snapshot
from stream_cgzsl.schemas import Array

_STEPS = np.linspace(-1, 1, 401)
OFFSETS: Array = _STEPS * np.abs(_STEPS)
"""Offsets that are compared, densest around 0. Scores of a feature at length 1 hardly leave [-1, 1]."""

FADING = 0.95
"""The weight of a window's accuracies one window later."""


class Prior(NamedTuple):
    """The offset expected before anything was measured, and how far from it the offset may well be.

    Both are in the units of a learner's scores. The expectation weighs as much as one class on either side.
    """

    expected: float
    doubt: float


WHITENED = Prior(0.1, 0.1)
"""For scores in the whitened space."""


@dataclass(frozen=True, eq=False)
class AccuracyCurves:
    """Two curves over `OFFSETS`: the accuracy of seen and of unseen classes if scores of seen classes were lower by it.

    Both are sums over classes of the fraction of a class's rows that would be right, and fade from window to window.
    An immutable value. No feature of a truly unseen class is ever part of it: the unseen curve comes from classes that
    the weights in question were not trained on, whatever became of them later.
    """

    seen: Array  # [offsets]
    unseen: Array  # [offsets]
    seen_classes: float
    unseen_classes: float

    @classmethod
    def none(cls) -> AccuracyCurves:
        return cls(np.zeros(len(OFFSETS)), np.zeros(len(OFFSETS)), 0.0, 0.0)

    def faded(self) -> AccuracyCurves:
        """Once per window, before its accuracies are added."""
        return AccuracyCurves(
            FADING * self.seen, FADING * self.unseen, FADING * self.seen_classes, FADING * self.unseen_classes
        )

    def with_seen(self, scores: Array, truth: Array, seen: npt.NDArray[np.bool_]) -> AccuracyCurves:
        """Adds held rows of seen classes: their scores [rows, classes] without offset, and the index of their class."""
        if not len(truth):
            return self
        rival = _best(scores, ~seen)
        own = np.take_along_axis(scores, truth[:, None], axis=1)[:, 0]
        limit = np.where(own >= _best(scores, seen), own - rival, -np.inf)  # right while the offset is below
        curve, classes = _per_class(limit[:, None] > OFFSETS, truth)
        return replace(self, seen=self.seen + curve, seen_classes=self.seen_classes + classes)

    def with_unseen(self, scores: Array, truth: Array, seen: npt.NDArray[np.bool_]) -> AccuracyCurves:
        """Adds rows of classes that were unseen to the weights that gave these scores: `seen` is as they knew it."""
        if not len(truth):
            return self
        rival = _best(scores, seen)
        own = np.take_along_axis(scores, truth[:, None], axis=1)[:, 0]
        limit = np.where(own >= _best(scores, ~seen), rival - own, np.inf)  # right once the offset is above
        curve, classes = _per_class(limit[:, None] < OFFSETS, truth)
        return replace(self, unseen=self.unseen + curve, unseen_classes=self.unseen_classes + classes)

    def best_offset(self, prior_seen: float = 1.0, prior_unseen: float = 1.0, prior: Prior = WHITENED) -> float:
        """The offset with the highest harmonic mean of both accuracies, with one imaginary class on each side as prior.

        `prior_seen` and `prior_unseen` are the highest accuracies of the imaginary classes.
        """
        doubt = 1 / (1 + np.exp((OFFSETS - prior.expected) / prior.doubt))
        seen = (self.seen + prior_seen * doubt) / (self.seen_classes + 1)
        unseen = (self.unseen + prior_unseen * (1 - doubt)) / (self.unseen_classes + 1)
        return float(OFFSETS[np.argmax(seen * unseen / (seen + unseen))])

    def record(self) -> dict[str, Any]:
        """For `Generation.calibration`."""
        return {
            "offset": round(self.best_offset(), 9),
            "evidence_seen_classes": round(self.seen_classes, 6),
            "evidence_unseen_classes": round(self.unseen_classes, 6),
        }

    def snapshot(self) -> Snapshot:
        return Snapshot(
            {"evidence": np.stack([self.seen, self.unseen])},
            {"evidence_classes": [self.seen_classes, self.unseen_classes]},
        )

    @classmethod
    def restore(cls, snapshot: Snapshot) -> AccuracyCurves:
        """From a snapshot that contains the curves; empty curves if it does not."""
        if "evidence" not in snapshot.arrays:
            return cls.none()
        seen, unseen = np.array(snapshot.arrays["evidence"], dtype=np.float64)
        return cls(seen, unseen, *map(float, snapshot.meta["evidence_classes"]))


def _best(scores: Array, columns: npt.NDArray[np.bool_]) -> Array:
    """The highest score among some classes; minus infinity where there are none."""
    return np.asarray(scores[:, columns].max(axis=1, initial=-np.inf))


def _per_class(right: npt.NDArray[np.bool_], truth: Array) -> tuple[Array, int]:
    """Sum over classes of the mean over the class's rows, and the number of classes."""
    classes, index, counts = np.unique(truth, return_inverse=True, return_counts=True)
    sums = np.zeros((len(classes), right.shape[1]))
    np.add.at(sums, index, right)
    return (sums / counts[:, None]).sum(axis=0), len(classes)
