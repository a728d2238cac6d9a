"""Measuring accuracies with a window before it is learned: on held-out rows, and on classes pretended to be unseen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch

from stream_cgzsl.learners.calibration.curves import AccuracyCurves
from stream_cgzsl.learners.numerics.randomness import generator
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.features import BLOCK_ROWS
from stream_cgzsl.learners.statistics.moments import Moments
from stream_cgzsl.schemas import Array
from stream_cgzsl.windows.window import Examples, Window

HELD = 5
"""One row in this many is held out, up to one block of rows per class."""

FOLDS = 4
"""Number of folds in which the window's new classes are pretended to be unseen."""

Scorer = Callable[[Array], Array]
"""[rows, features] as they came -> [rows, classes] scores without offset."""

Fit = Callable[[ClassStatistics], Scorer]
"""A learner without its offset, from statistics in which at least one class is seen."""


def measure_accuracies(
    curves: AccuracyCurves,
    window: Window,
    before: ClassStatistics,
    fit: Fit,
    device: torch.device | str = "cpu",
    check: Callable[[], None] = lambda: None,
) -> AccuracyCurves:
    """The curves after this window. `before` has the window's descriptions, none of its features.

    Seen: fitted on four rows in five of each class, tested on the fifth (the first ones in training order). Unseen:
    fitted without any row of some of the window's new classes, tested on those. Classes that were trained on before are
    never pretended to be unseen.
    """
    curves = curves.faded()
    trained, held = split_rows(window)
    new = [c for c in trained if c not in before.moments.counts]
    order = torch.randperm(len(new), generator=generator(before.space.seed, window.number, "folds")).tolist()
    folds = [sorted(new[i] for i in order[turn::FOLDS]) for turn in range(min(FOLDS, len(new)))]
    returning = [c for c in trained if c in before.moments.counts]
    parts = [_moments({c: trained[c] for c in part}, before, device, check) for part in (*folds, returning)]

    everything = _learned(before, parts, device)
    if held and everything.seen.any():
        score = fit(everything)
        for rows, truth in in_batches(held, everything.class_ids):
            check()
            curves = curves.with_seen(score(rows), truth, everything.seen)
    for turn, fold in enumerate(folds):
        known = _learned(before, parts[:turn] + parts[turn + 1 :], device)
        if not known.seen.any():
            continue
        score = fit(known)
        for rows, truth in in_batches({c: window.features[c].rows for c in fold}, known.class_ids):
            check()
            curves = curves.with_unseen(score(rows), truth, known.seen)
    return curves


def split_rows(window: Window) -> tuple[dict[str, Examples], dict[str, Array]]:
    """Rows to train on, with their share of the count; and held-out rows. A single row is trained on."""
    trained: dict[str, Examples] = {}
    held: dict[str, Array] = {}
    for class_id in sorted(window.features):
        examples = window.features[class_id]
        kept = len(examples.rows)
        if not kept:
            continue
        back = min(kept // HELD or int(kept > 1), BLOCK_ROWS)
        trained[class_id] = Examples(examples.count * (kept - back) // kept, examples.rows[back:])
        if back:
            held[class_id] = examples.rows[:back]
    return trained, held


def _moments(
    examples: Mapping[str, Examples], before: ClassStatistics, device: torch.device | str, check: Callable[[], None]
) -> Moments:
    return Moments.of(examples, before.space.features, before.transform, device, check)


def _learned(before: ClassStatistics, parts: list[Moments], device: torch.device | str) -> ClassStatistics:
    for part in parts:
        before = before.learned(part, device)
    return before


def in_batches(rows: Mapping[str, Array], class_ids: tuple[str, ...]) -> Iterator[tuple[Array, Array]]:
    """Rows to test with, and the index of each row's class; a class is never split over two batches.

    Of a class with more rows than a block, the first are enough to know its accuracy.
    """
    index = {class_id: i for i, class_id in enumerate(class_ids)}
    batch: list[tuple[int, Array]] = []
    for class_id in rows:
        asked = rows[class_id][:BLOCK_ROWS]
        if batch and sum(len(block) for _, block in batch) + len(asked) > BLOCK_ROWS:
            yield _joined(batch)
            batch = []
        batch.append((index[class_id], asked))
    if batch:
        yield _joined(batch)


def _joined(batch: list[tuple[int, Array]]) -> tuple[Array, Array]:
    truth = np.repeat([label for label, _ in batch], [len(block) for _, block in batch])
    return np.concatenate([block for _, block in batch]), truth
