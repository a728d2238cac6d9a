"""How a generation classifies labelled rows, and how often it is right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stream_cgzsl.schemas import Array, harmonic_mean
from stream_cgzsl.serving.generation import Generation

_BATCH_ROWS = 2048  # classified in one matrix product
_BATCH_SCORES = 2**24  # at most, 64 MB: fewer rows where there are many classes


class Labelled(NamedTuple):
    """Rows to classify, with the index of each row's true class in the generation."""

    truth: npt.NDArray[np.int64]  # [rows]
    rows: Array  # [rows, features]


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of a generation, one entry per row.

    `lead` is the best seen score minus the best unseen score: a larger offset, added to the scores of unseen classes,
    makes the answer an unseen class. `right_in_group` is whether the true class scores best in its own group, seen or
    unseen: then it is the answer whenever an offset makes that group win.
    """

    truth: npt.NDArray[np.int64]
    right: npt.NDArray[np.bool_]
    right_in_group: npt.NDArray[np.bool_]
    lead: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Accuracies:
    """The fraction of correct answers by class id, in order, and its means over seen and over unseen classes."""

    per_class: Mapping[str, float]
    seen: float | None
    unseen: float | None

    @property
    def harmonic(self) -> float | None:
        return harmonic_mean(self.seen, self.unseen)


def classify(generation: Generation, batches: Iterable[Labelled], alive: Callable[[], None] = lambda: None) -> Answers:
    """The answers to all rows. `alive` is called before each batch and may raise to stop."""
    seen, unseen = np.flatnonzero(generation.seen), np.flatnonzero(~generation.seen)
    found = [_no_answers()]
    for truth, rows in batches:
        alive()
        scores = generation.scores(rows)
        best_seen, score_seen = _best(scores, seen)
        best_unseen, score_unseen = _best(scores, unseen)
        in_group = np.where(generation.seen[truth], best_seen, best_unseen)
        found.append(Answers(truth, scores.argmax(axis=1) == truth, in_group == truth, score_seen - score_unseen))
    fields = ("truth", "right", "right_in_group", "lead")
    return Answers(*(np.concatenate([getattr(answers, field) for answers in found]) for field in fields))


def accuracies(generation: Generation, answers: Answers) -> Accuracies:
    """Accuracies of the classes that have rows; other classes are left out."""
    rows = np.bincount(answers.truth, minlength=len(generation.class_ids))
    tested = np.flatnonzero(rows)
    right = np.bincount(answers.truth, answers.right, minlength=len(rows))[tested] / rows[tested]
    per_class = {generation.class_ids[index]: accuracy for index, accuracy in zip(tested, right.tolist(), strict=True)}
    seen = generation.seen[tested]
    return Accuracies(per_class, _mean(right[seen]), _mean(right[~seen]))


def in_batches(class_ids: Sequence[str], rows: Mapping[str, Sequence[Array] | Array]) -> Iterator[Labelled]:
    """The rows of these classes in batches, class by class in the order given."""
    truth: list[int] = []
    joined: list[Array] = []
    most = max(1, min(_BATCH_ROWS, _BATCH_SCORES // max(1, len(class_ids))))
    for index, class_id in enumerate(class_ids):
        for row in rows.get(class_id, ()):
            truth.append(index)
            joined.append(row)
            if len(joined) == most:
                yield Labelled(np.array(truth), np.stack(joined))
                truth, joined = [], []
    if joined:
        yield Labelled(np.array(truth), np.stack(joined))


def _best(scores: Array, columns: npt.NDArray[np.int64]) -> tuple[Array, npt.NDArray[np.float64]]:
    """The best of some classes for each row, and its score. Without classes: -1, and minus infinity."""
    if not len(columns):
        return np.full(len(scores), -1), np.full(len(scores), -np.inf)
    part = scores[:, columns]
    best = part.argmax(axis=1)
    return columns[best], np.take_along_axis(part, best[:, None], axis=1)[:, 0].astype(np.float64)


def _mean(values: Array) -> float | None:
    return float(values.mean()) if len(values) else None


def _no_answers() -> Answers:
    return Answers(np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0, bool), np.zeros(0))
