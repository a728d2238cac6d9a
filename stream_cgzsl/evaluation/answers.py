"""Asking a generation about labelled rows: what it answered, and how often that was right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stream_cgzsl.generation import Array, Generation

ROWS_AT_ONCE = 2048
"""Rows asked about in one matrix product."""


class Labelled(NamedTuple):
    """Rows to ask about, with the index of each row's class among the generation's."""

    truth: npt.NDArray[np.int64]  # [rows]
    rows: Array  # [rows, features]


@dataclass(frozen=True, eq=False)
class Answers:
    """What a generation answered, one entry a row.

    `lead` is how far the best seen class is before the best unseen one: an offset above it, added to the scores of
    unseen classes, makes the answer an unseen class. `right_in_group` is whether the true class is the best of its own
    group, seen or unseen, and so the answer wherever that group gives it.
    """

    truth: npt.NDArray[np.int64]
    right: npt.NDArray[np.bool_]
    right_in_group: npt.NDArray[np.bool_]
    lead: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Accuracies:
    """The share of rows answered rightly, by class id in order; and its means over seen and over unseen classes."""

    per_class: Mapping[str, float]
    seen: float | None
    unseen: float | None

    @property
    def harmonic(self) -> float | None:
        return harmonic_mean(self.seen, self.unseen)


def harmonic_mean(seen: float | None, unseen: float | None) -> float | None:
    """None unless there are both."""
    if seen is None or unseen is None:
        return None
    return 2 * seen * unseen / (seen + unseen) if seen + unseen else 0.0


def ask(generation: Generation, batches: Iterable[Labelled], alive: Callable[[], None] = lambda: None) -> Answers:
    """The answers to all rows. `alive` is called before each batch and may raise to stop."""
    seen, unseen = np.flatnonzero(generation.seen), np.flatnonzero(~generation.seen)
    asked = [_no_answers()]
    for truth, rows in batches:
        alive()
        scores = generation.scores(rows)
        best_seen, score_seen = _best(scores, seen)
        best_unseen, score_unseen = _best(scores, unseen)
        in_group = np.where(generation.seen[truth], best_seen, best_unseen)
        asked.append(Answers(truth, scores.argmax(axis=1) == truth, in_group == truth, score_seen - score_unseen))
    fields = ("truth", "right", "right_in_group", "lead")
    return Answers(*(np.concatenate([getattr(answers, field) for answers in asked]) for field in fields))


def accuracies(generation: Generation, answers: Answers) -> Accuracies:
    """Per-class accuracies; classes that nothing was asked about are not among them."""
    rows = np.bincount(answers.truth, minlength=len(generation.class_ids))
    asked = np.flatnonzero(rows)
    shares = np.bincount(answers.truth, answers.right, minlength=len(rows))[asked] / rows[asked]
    per_class = {generation.class_ids[index]: share for index, share in zip(asked, shares.tolist(), strict=True)}
    seen = generation.seen[asked]
    return Accuracies(per_class, _mean(shares[seen]), _mean(shares[~seen]))


def in_batches(class_ids: Sequence[str], rows: Mapping[str, Sequence[Array] | Array]) -> Iterator[Labelled]:
    """The rows of these classes, class by class in their order, joined into batches."""
    truth: list[int] = []
    joined: list[Array] = []
    for index, class_id in enumerate(class_ids):
        for row in rows.get(class_id, ()):
            truth.append(index)
            joined.append(row)
            if len(joined) == ROWS_AT_ONCE:
                yield Labelled(np.array(truth), np.stack(joined))
                truth, joined = [], []
    if joined:
        yield Labelled(np.array(truth), np.stack(joined))


def _best(scores: Array, columns: npt.NDArray[np.int64]) -> tuple[Array, npt.NDArray[np.float64]]:
    """Of each row the best among some classes, and its score; where there are none, no class, at minus infinity."""
    if not len(columns):
        return np.full(len(scores), -1), np.full(len(scores), -np.inf)
    part = scores[:, columns]
    place = part.argmax(axis=1)
    return columns[place], np.take_along_axis(part, place[:, None], axis=1)[:, 0].astype(np.float64)


def _mean(shares: Array) -> float | None:
    return float(shares.mean()) if len(shares) else None


def _no_answers() -> Answers:
    return Answers(np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0, bool), np.zeros(0))
