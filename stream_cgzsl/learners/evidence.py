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
"""One row in so many is held back."""

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

    Seen: fitted on four rows in five of each class, asked about the fifth. Unseen: fitted without any row of some of
    the window's new classes, asked about those. A class that returns was trained on before and is never pretended.
    """
    evidence = evidence.faded()
    trained, held = _split(window, before.space.seed)
    new = [c for c in trained if c not in before.moments.counts]
    order = torch.randperm(len(new), generator=generator(before.space.seed, window.number, "folds")).tolist()
    folds = [sorted(new[i] for i in order[turn::FOLDS]) for turn in range(min(FOLDS, len(new)))]
    returning = [c for c in trained if c in before.moments.counts]
    parts = [_moments({c: trained[c] for c in part}, before, device, check) for part in (*folds, returning)]

    everything = _learned(before, parts, device)
    if held and everything.seen.any():
        score = fit(everything)
        for rows, truth in _batches(held, everything.class_ids):
            check()
            evidence = evidence.with_seen(score(rows), truth, everything.seen)
    for turn, fold in enumerate(folds):
        known = _learned(before, parts[:turn] + parts[turn + 1 :], device)
        if not known.seen.any():
            continue
        score = fit(known)
        for rows, truth in _batches({c: window.features[c].rows for c in fold}, known.class_ids):
            check()
            evidence = evidence.with_unseen(score(rows), truth, known.seen)
    return evidence


def _split(window: Window, seed: int) -> tuple[dict[str, Examples], dict[str, Array]]:
    """Four rows in five, standing for four in five of those that came; and the fifth. A single row is not held back."""
    trained: dict[str, Examples] = {}
    held: dict[str, Array] = {}
    draw = generator(seed, window.number, "held")
    for class_id in sorted(window.features):
        examples = window.features[class_id]
        kept = len(examples.rows)
        if not kept:
            continue
        order = torch.randperm(kept, generator=draw).numpy()
        back = kept // HELD or int(kept > 1)
        stay = np.sort(order[back:])
        trained[class_id] = Examples(max(examples.count * len(stay) // kept, len(stay)), examples.rows[stay])
        if back:
            held[class_id] = examples.rows[np.sort(order[:back])]
    return trained, held


def _moments(
    examples: Mapping[str, Examples], before: Statistics, device: torch.device | str, check: Callable[[], None]
) -> Moments:
    return Moments.of(examples, before.space.features, before.transform, device, check)


def _learned(before: Statistics, parts: list[Moments], device: torch.device | str) -> Statistics:
    for part in parts:
        before = before.learned(part, device)
    return before


def _batches(rows: Mapping[str, Array], class_ids: tuple[str, ...]) -> Iterator[tuple[Array, Array]]:
    """Whole classes together, as many as fit, with the index of each row's class."""
    index = {class_id: i for i, class_id in enumerate(class_ids)}
    batch: list[str] = []
    for class_id in rows:
        if batch and sum(len(rows[c]) for c in batch) + len(rows[class_id]) > ROWS_AT_ONCE:
            yield _joined(rows, batch, index)
            batch = []
        batch.append(class_id)
    if batch:
        yield _joined(rows, batch, index)


def _joined(rows: Mapping[str, Array], batch: list[str], index: Mapping[str, int]) -> tuple[Array, Array]:
    truth = np.repeat([index[c] for c in batch], [len(rows[c]) for c in batch])
    return np.concatenate([rows[c] for c in batch]), truth
