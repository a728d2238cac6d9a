"""Measuring accuracies of learners that train once per window: old weights on new rows, and a few held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from stream_cgzsl.learners.calibration.curves import AccuracyCurves, Prior
from stream_cgzsl.learners.calibration.held_out import Scorer, in_batches, split_rows
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.features import BLOCK_ROWS, transformed
from stream_cgzsl.learners.statistics.learner import Lesson
from stream_cgzsl.schemas import Array
from stream_cgzsl.windows.window import Examples, Window


@dataclass(frozen=True, eq=False)
class Withheld:
    """A lesson without one row in five of each class.

    `statistics` are those after the lesson, with class means that do not include the held-out rows. The pooled scatter
    is that of all rows, because a few hardly matter in it.
    """

    statistics: ClassStatistics
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
        for start in range(0, len(kept), BLOCK_ROWS):
            total += transformed(kept[start : start + BLOCK_ROWS], lesson.after.transform, device).sum(dim=0)
        mean = (total / len(kept)).cpu().numpy()
        old, new = before.counts.get(class_id, 0), trained[class_id].count
        means[class_id] = (old * before.means[class_id] + new * mean) / (old + new) if old else mean
    return Withheld(replace(lesson.after, moments=replace(after, means=means)), trained, held)


def add_unseen(curves: AccuracyCurves, window: Window, before: ClassStatistics, score: Scorer) -> AccuracyCurves:
    """Adds the accuracy of `score`, which was made before the window, on rows of the window's new classes.

    Most were described in this very window, so a learner that trains on described classes has not met them. Asking only
    about those it has met was worse: there are too few.
    """
    new = {c: given.rows for c, given in window.features.items() if c not in before.moments.counts and len(given.rows)}
    for rows, truth in in_batches(new, before.class_ids):
        curves = curves.with_unseen(score(rows), truth, before.seen)
    return curves


def add_seen(curves: AccuracyCurves, withheld: Withheld, score: Scorer) -> AccuracyCurves:
    """Adds the accuracy of `score`, which was made from the other rows, on the held-out ones."""
    for rows, truth in in_batches(withheld.held, withheld.statistics.class_ids):
        curves = curves.with_seen(score(rows), truth, withheld.statistics.seen)
    return curves


def best_offset(curves: AccuracyCurves, prior: Prior) -> float:
    """As `AccuracyCurves.best_offset`, with imaginary classes that are at best as accurate as the real ones.

    The weights that were tested on unseen classes knew less than those that will answer: next to the few they get
    right, a perfect imaginary class would decide alone. Without any unseen class the offset is the expected one.
    """
    if not curves.unseen_classes:
        return prior.expected
    best_seen = max(curves.seen.max() / max(curves.seen_classes, 1e-9), 1e-9)
    best_unseen = max(curves.unseen.max() / curves.unseen_classes, 1e-9)
    return curves.best_offset(best_seen, best_unseen, prior)
