"""How good a run was: accuracies per class, averaged over classes, then over windows. Nothing is chosen here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.settings import Plan, as_used, windows
from stream_cgzsl.evaluation.answers import Accuracies, accuracies, ask, in_batches
from stream_cgzsl.evaluation.curve import seen_unseen_curve
from stream_cgzsl.evaluation.forgetting import best_since_learned, forgetting
from stream_cgzsl.generation import Generation
from stream_cgzsl.learners.interface import Learner

Tests = Mapping[str, npt.NDArray[Any]]
"""The test features of each class, [rows, features]."""


@dataclass(frozen=True)
class Accuracy:
    """Mean accuracy per class, in percent, of the seen and of the unseen classes of one label space.

    None where there is no such class to test.
    """

    seen: float | None
    unseen: float | None

    @property
    def harmonic(self) -> float | None:
        if self.seen is None or self.unseen is None:
            return None
        total = self.seen + self.unseen
        return 2 * self.seen * self.unseen / total if total else 0.0


@dataclass(frozen=True)
class Scores:
    """One reading of a run: an accuracy a window, and their means. mH is the mean of the harmonic means.

    Windows that have no such figure are left out of a mean: in the static setting the last one has no unseen class, so
    that mUA and mH are over T - 1 windows, as the paper has them. A mean of nothing is None.
    """

    windows: tuple[Accuracy, ...]

    @property
    def mSA(self) -> float | None:
        return mean(accuracy.seen for accuracy in self.windows)

    @property
    def mUA(self) -> float | None:
        return mean(accuracy.unseen for accuracy in self.windows)

    @property
    def mH(self) -> float | None:
        return mean(accuracy.harmonic for accuracy in self.windows)

    def __str__(self) -> str:
        return " / ".join("-" if figure is None else f"{figure:.1f}" for figure in (self.mSA, self.mUA, self.mH))


def mean(figures: Iterable[float | None]) -> float | None:
    """The mean of the figures there are."""
    there = [figure for figure in figures if figure is not None]
    return float(np.mean(there)) if there else None


@dataclass(frozen=True)
class Readings:
    """Both readings of a run, in percent.

    `as_of`: the model after window t, on everything known at t. `recalculated`: the final model on each window's test
    set and label space, with seen and unseen as they were then. `forgetting` is how much lower learned classes were, as
    of each window, than the best they had been; `areas` are those under the seen-unseen curve.
    """

    as_of: Scores
    recalculated: Scores
    forgetting: tuple[float | None, ...]
    areas: tuple[float | None, ...]

    @property
    def forgotten(self) -> float | None:
        """What the last window's model has forgotten."""
        return self.forgetting[-1] if self.forgetting else None

    @property
    def mAUSUC(self) -> float | None:
        return mean(self.areas)


class Scoring:
    """Scores a run while it goes on: of every generation but the last, only its classes are kept."""

    def __init__(self, tests: Tests) -> None:
        self._tests = tests
        self._known: list[Generation] = []
        self._last: Generation | None = None
        self._as_of: list[Accuracy] = []
        self._forgetting: list[float | None] = []
        self._areas: list[float | None] = []
        self._best: Mapping[str, float] = {}

    def add(self, generation: Generation) -> Accuracy:
        """Takes the generation of the next window; returns its accuracy as of that window."""
        answers = ask(generation, in_batches(generation.class_ids, self._tests))
        found = accuracies(generation, answers)
        curve = seen_unseen_curve(answers, generation.seen)
        learned = frozenset(c for c, seen in zip(generation.class_ids, generation.seen, strict=True) if seen)
        self._as_of.append(_in_percent(found))
        self._forgetting.append(_percent(forgetting(self._best, learned, found.per_class)))
        self._areas.append(None if curve is None else 100 * curve.area)
        self._best = best_since_learned(self._best, learned, found.per_class)
        self._known.append(_without_vectors(generation))
        self._last = generation
        return self._as_of[-1]

    def readings(self) -> Readings:
        """The readings of the run so far. Raises `ValueError` before the first generation."""
        if self._last is None:
            raise ValueError("no generation was added yet")
        again = Scores(recalculated(self._last, self._known, self._tests))
        return Readings(Scores(tuple(self._as_of)), again, tuple(self._forgetting), tuple(self._areas))


def accuracy(model: Generation, known: Generation, tests: Tests) -> Accuracy:
    """How `model` does on the classes of `known`; see `recalculated`."""
    return recalculated(model, [known], tests)[0]


def recalculated(model: Generation, known: Sequence[Generation], tests: Tests) -> tuple[Accuracy, ...]:
    """How `model` does in the label space of each earlier generation, as far as its classes still live.

    Seen and unseen are as they were then. Every row is scored once, however many generations there are.
    """
    place = {class_id: index for index, class_id in enumerate(model.class_ids)}
    spaces = [np.array([place[c] for c in earlier.class_ids if c in place], np.int64) for earlier in known]
    shares: list[dict[str, float]] = [{} for _ in known]
    for class_id, rows in tests.items():
        if class_id not in place or not len(rows):
            continue
        scores = model.scores(rows)
        for space, found in zip(spaces, shares, strict=True):
            if place[class_id] in space:
                right = space[scores[:, space].argmax(axis=1)] == place[class_id]
                found[class_id] = 100 * float(right.mean())
    return tuple(_grouped(earlier, found) for earlier, found in zip(known, shares, strict=True))


def _grouped(known: Generation, found: Mapping[str, float]) -> Accuracy:
    flags = dict(zip(known.class_ids, known.seen.tolist(), strict=True))
    seen, unseen = ([share for c, share in found.items() if flags[c] is flag] for flag in (True, False))
    return Accuracy(mean(seen), mean(unseen))


def _without_vectors(generation: Generation) -> Generation:
    """Its classes, in a form that costs nothing to keep."""
    return replace(generation, vectors=np.zeros((len(generation.class_ids), 0)), centre=np.zeros(0))


def _in_percent(found: Accuracies) -> Accuracy:
    return Accuracy(_percent(found.seen), _percent(found.unseen))


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


# ---- a run without a stream


@dataclass(frozen=True)
class Run:
    """What came of giving a data set's windows to a learner, one after the other."""

    generations: tuple[Generation, ...]
    readings: Readings
    seconds_training: float

    @property
    def as_of(self) -> Scores:
        return self.readings.as_of

    @property
    def recalculated(self) -> Scores:
        return self.readings.recalculated


def run(learner: Learner, data: Dataset, plan: Plan, order: int | None = None) -> Run:
    """Fits every window of a plan in turn; test rows are only ever looked at here."""
    generations: list[Generation] = []
    seconds = 0.0
    used = as_used(data, plan, order)
    scoring = Scoring({class_id: used.test(class_id) for class_id in used.class_ids})
    for window in windows(data, plan, order):
        started = perf_counter()
        generations.append(learner.fit(window))
        seconds += perf_counter() - started
        scoring.add(generations[-1])
    return Run(tuple(generations), scoring.readings(), seconds)
