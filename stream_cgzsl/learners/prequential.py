"""Evidence for learners that train once a window: ask the old weights about the new rows, hold a few rows back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stream_cgzsl.learners.base import Lesson
from stream_cgzsl.learners.calibration import DOUBT, EXPECTED, OFFSETS, Evidence
from stream_cgzsl.learners.evidence import Scorer, in_batches, split_rows
from stream_cgzsl.learners.features import ROWS_AT_ONCE, transformed
from stream_cgzsl.learners.statistics import Statistics
from stream_cgzsl.windows.window import Examples, Window

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Withheld:
    """A lesson less one row in five of each class.

    `statistics` are those after the lesson with class means that do not know the held rows; the pooled scatter, in
    which a few rows hardly count, is that of all rows.
    """

    statistics: Statistics
    trained: Mapping[str, Examples]
    held: Mapping[str, Array]

    @classmethod
    def nothing(cls, lesson: Lesson) -> Withheld:
        return cls(lesson.after, lesson.window.features, {})


def withhold(lesson: Lesson, device: torch.device | str) -> Withheld:
    trained, held = split_rows(lesson.window)
    before, after = lesson.before.moments, lesson.after.moments
    means = dict(after.means)
    for class_id in held:
        kept = trained[class_id].rows
        total = torch.zeros(after.scatter.shape[0], dtype=torch.float64, device=device)
        for start in range(0, len(kept), ROWS_AT_ONCE):
            total += transformed(kept[start : start + ROWS_AT_ONCE], lesson.after.transform, device).sum(dim=0)
        mean = (total / len(kept)).cpu().numpy()
        old, new = before.counts.get(class_id, 0), trained[class_id].count
        means[class_id] = (old * before.means[class_id] + new * mean) / (old + new) if old else mean
    return Withheld(replace(lesson.after, moments=replace(after, means=means)), trained, held)


def unseen_evidence(evidence: Evidence, window: Window, before: Statistics, score: Scorer) -> Evidence:
    """Adds what `score`, made before the window, says of rows of the classes that are new to it."""
    new = {c: given.rows for c, given in window.features.items() if c not in before.moments.counts and len(given.rows)}
    for rows, truth in in_batches(new, before.class_ids):
        evidence = evidence.with_unseen(score(rows), truth, before.seen)
    return evidence


def seen_evidence(evidence: Evidence, withheld: Withheld, score: Scorer) -> Evidence:
    """Adds what `score`, made from the other rows, says of the held ones."""
    for rows, truth in in_batches(withheld.held, withheld.statistics.class_ids):
        evidence = evidence.with_seen(score(rows), truth, withheld.statistics.seen)
    return evidence


def offset(evidence: Evidence) -> float:
    """Where the harmonic mean of both accuracies is highest, with one imaginary class on each side as prior.

    An imaginary class is as accurate, at its best, as the real ones: the weights asked about unseen classes knew less
    than those that will answer, and beside the few they get right a perfect class would decide alone. Without any
    evidence of unseen classes the offset is the expected one.
    """
    if not evidence.unseen_classes:
        return EXPECTED
    doubt = 1 / (1 + np.exp((OFFSETS - EXPECTED) / DOUBT))
    best_seen = max(evidence.seen.max() / max(evidence.seen_classes, 1e-9), 1e-9)
    best_unseen = max(evidence.unseen.max() / evidence.unseen_classes, 1e-9)
    seen = (evidence.seen + best_seen * doubt) / (evidence.seen_classes + 1)
    unseen = (evidence.unseen + best_unseen * (1 - doubt)) / (evidence.unseen_classes + 1)
    return float(OFFSETS[np.argmax(seen * unseen / (seen + unseen))])
