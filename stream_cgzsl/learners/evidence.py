"""How a window gives evidence before it is learned: rows held back, and classes pretended unseen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stream_cgzsl.learners.calibration import Evidence
from stream_cgzsl.learners.features import ROWS_AT_ONCE
from stream_cgzsl.learners.moments import Moments
from stream_cgzsl.learners.randomness import generator
from stream_cgzsl.learners.statistics import Statistics
from stream_cgzsl.windows.window import Examples, Window

Array = npt.NDArray[Any]

HELD = 5
"""One row in so many is held back, up to as many of a class as are worked on at a time."""

FOLDS = 4
"""The window's new classes are pretended unseen in so many turns."""

Scorer = Callable[[Array], Array]
"""[rows, features] as they came -> [rows, classes] scores without offset."""

Fit = Callable[[Statistics], Scorer]
"""A learner without its offset, from statistics in which at least one class is seen."""


def gather_evidence(
    evidence: Evidence,
    window: Window,
    before: Statistics,
    fit: Fit,
    device: torch.device | str = "cpu",
    check: Callable[[], None] = lambda: None,
) -> Evidence:
    """The evidence after this window. `before` has the window's descriptions, none of its features.

    Seen: fitted on four rows in five of each class, asked about the fifth, which is the first in training order.
    Unseen: fitted without any row of some of the window's new classes, asked about those. A class that returns was
    trained on before and is never pretended. No row is copied beyond those worked on at a time.
    """
    evidence = evidence.faded()
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
            evidence = evidence.with_seen(score(rows), truth, everything.seen)
    for turn, fold in enumerate(folds):
        known = _learned(before, parts[:turn] + parts[turn + 1 :], device)
        if not known.seen.any():
            continue
        score = fit(known)
        for rows, truth in in_batches({c: window.features[c].rows for c in fold}, known.class_ids):
            check()
            evidence = evidence.with_unseen(score(rows), truth, known.seen)
    return evidence


def split_rows(window: Window) -> tuple[dict[str, Examples], dict[str, Array]]:
    """Rows to train on, standing for as large a share of those that came; and rows held back. A single row stays."""
    trained: dict[str, Examples] = {}
    held: dict[str, Array] = {}
    for class_id in sorted(window.features):
        examples = window.features[class_id]
        kept = len(examples.rows)
        if not kept:
            continue
        back = min(kept // HELD or int(kept > 1), ROWS_AT_ONCE)
        trained[class_id] = Examples(examples.count * (kept - back) // kept, examples.rows[back:])
        if back:
            held[class_id] = examples.rows[:back]
    return trained, held


def _moments(
    examples: Mapping[str, Examples], before: Statistics, device: torch.device | str, check: Callable[[], None]
) -> Moments:
    return Moments.of(examples, before.space.features, before.transform, device, check)


def _learned(before: Statistics, parts: list[Moments], device: torch.device | str) -> Statistics:
    for part in parts:
        before = before.learned(part, device)
    return before


def in_batches(rows: Mapping[str, Array], class_ids: tuple[str, ...]) -> Iterator[tuple[Array, Array]]:
    """Rows to ask about, with the index of each row's class: whole classes together, as many as fit.

    Of a class with more rows than are worked on at a time, the first are enough to know its accuracy.
    """
    index = {class_id: i for i, class_id in enumerate(class_ids)}
    batch: list[tuple[int, Array]] = []
    for class_id in rows:
        asked = rows[class_id][:ROWS_AT_ONCE]
        if batch and sum(len(block) for _, block in batch) + len(asked) > ROWS_AT_ONCE:
            yield _joined(batch)
            batch = []
        batch.append((index[class_id], asked))
    if batch:
        yield _joined(batch)


def _joined(batch: list[tuple[int, Array]]) -> tuple[Array, Array]:
    truth = np.repeat([label for label, _ in batch], [len(block) for _, block in batch])
    return np.concatenate([block for _, block in batch]), truth
