"""How good a run was: accuracy per class, averaged over classes, then over windows. No model is chosen here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.protocols import AnyPlan, as_used, windows
from stream_cgzsl.evaluation.answers import accuracies, classify, in_batches
from stream_cgzsl.evaluation.curve import seen_unseen_curve
from stream_cgzsl.evaluation.examples import accuracy_by_examples
from stream_cgzsl.evaluation.forgetting import ClassAccuracies, best_since_learned, forgetting, task_forgetting
from stream_cgzsl.learners.interface import Learner
from stream_cgzsl.schemas import EXAMPLE_BUCKETS, Array, harmonic_mean
from stream_cgzsl.serving.generation import Generation, following

Tests = Mapping[str, Array]
"""The test features of each class, [rows, features]."""


@dataclass(frozen=True)
class Accuracy:
    """Mean per-class accuracy, in percent, of the seen and of the unseen classes of one label space.

    None where no such class was tested.
    """

    seen: float | None
    unseen: float | None

    @property
    def harmonic(self) -> float | None:
        return harmonic_mean(self.seen, self.unseen)


@dataclass(frozen=True)
class Scores:
    """One reading of a run: one accuracy per window, and their means. mH is the mean of the harmonic means.

    A mean leaves out the windows without such a figure: in the static setting the last window has no unseen class, so
    mUA and mH are over T - 1 windows, as in the paper. The mean of no figures is None.
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
    """The mean of the figures that are not None; None without any."""
    there = [figure for figure in figures if figure is not None]
    return float(np.mean(there)) if there else None


def mean_by_examples(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """For each group of classes, the mean over those that have it; without the groups that none has."""
    means = {bucket: mean(one.get(bucket) for one in found) for bucket in EXAMPLE_BUCKETS}
    return {bucket: figure for bucket, figure in means.items() if figure is not None}


@dataclass(frozen=True)
class Readings:
    """Both readings of a run, in percent.

    `as_of`: the model after window t, on everything known at t. `recalculated`: the final model on each window's test
    set and label space, with seen and unseen as they were then. Per window, `forgetting` is how far the seen classes
    were below their best accuracy so far, and `areas` has the area under the seen-unseen curve. As of each window,
    `overall` is the mean over all tested classes, and `by_examples` groups them by how many examples they have had.
    `task_forgetting` is that of the last window by task, where gains count against losses.
    """

    as_of: Scores
    recalculated: Scores
    forgetting: tuple[float | None, ...]
    areas: tuple[float | None, ...]
    overall: tuple[float | None, ...] = ()
    by_examples: tuple[Mapping[str, float], ...] = ()
    task_forgetting: float | None = None

    @property
    def final_forgetting(self) -> float | None:
        """Forgetting as of the last window."""
        return self.forgetting[-1] if self.forgetting else None

    @property
    def mAUSUC(self) -> float | None:
        return mean(self.areas)

    @property
    def mean_overall(self) -> float | None:
        return mean(self.overall)

    @property
    def mean_by_examples(self) -> dict[str, float]:
        return mean_by_examples(self.by_examples)


class Scoring:
    """Scores a run while it is running. Of every generation but the last it keeps only the classes."""

    def __init__(self, tests: Tests) -> None:
        self._tests = tests
        self._known: list[Generation] = []
        self._last: Generation | None = None
        self._as_of: list[Accuracy] = []
        self._forgetting: list[float | None] = []
        self._areas: list[float | None] = []
        self._overall: list[float | None] = []
        self._by_examples: list[Mapping[str, float]] = []
        self._best: Mapping[str, float] = {}
        self._per_class: list[ClassAccuracies] = []

    def add(self, generation: Generation) -> Accuracy:
        """Scores the generation of the next window; returns its accuracy as of that window."""
        answers = classify(generation, in_batches(generation.class_ids, self._tests))
        found = accuracies(generation, answers)
        curve = seen_unseen_curve(answers, generation.seen)
        learned = seen_in(generation)
        self._as_of.append(Accuracy(percent(found.seen), percent(found.unseen)))
        self._forgetting.append(percent(forgetting(self._best, learned, found.per_class)))
        self._areas.append(None if curve is None else 100 * curve.area)
        self._overall.append(overall_accuracy(found.per_class))
        self._by_examples.append(in_percent(accuracy_by_examples(generation, found.per_class)))
        self._best = best_since_learned(self._best, learned, found.per_class)
        self._per_class.append(found.per_class)
        self._known.append(_without_vectors(generation))
        self._last = generation
        return self._as_of[-1]

    def readings(self) -> Readings:
        """The readings of the run so far. Raises `ValueError` before the first generation."""
        if self._last is None:
            raise ValueError("no generation was added yet")
        return Readings(
            Scores(tuple(self._as_of)),
            Scores(recalculated(self._last, self._known, self._tests)),
            tuple(self._forgetting),
            tuple(self._areas),
            tuple(self._overall),
            tuple(self._by_examples),
            percent(task_forgetting([seen_in(known) for known in self._known], self._per_class)),
        )


def accuracy(model: Generation, known: Generation, tests: Tests) -> Accuracy:
    """The accuracy of `model` on the classes of `known`; see `recalculated`."""
    return recalculated(model, [known], tests)[0]


def recalculated(model: Generation, known: Sequence[Generation], tests: Tests) -> tuple[Accuracy, ...]:
    """The accuracy of `model` in the label space of each earlier generation, without classes retired since.

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
    """Its classes alone, which cost next to nothing to keep."""
    vectors, centre = np.zeros((len(generation.class_ids), 0)), np.zeros(0)
    return replace(generation, vectors=vectors, centre=centre, encoder=None)


def seen_in(generation: Generation) -> set[str]:
    return {class_id for class_id, seen in zip(generation.class_ids, generation.seen, strict=True) if seen}


def percent(fraction: float | None) -> float | None:
    return None if fraction is None else 100 * fraction


def in_percent(fractions: Mapping[str, float]) -> dict[str, float]:
    return {name: 100 * fraction for name, fraction in fractions.items()}


def overall_accuracy(per_class: Mapping[str, float]) -> float | None:
    """The mean over all classes, in percent; None without any."""
    return percent(mean(per_class.values()))


# ---- a run without a stream


@dataclass(frozen=True)
class Run:
    """The result of giving a data set's windows to a learner, one after the other; `seconds` is per window."""

    generations: tuple[Generation, ...]
    readings: Readings
    seconds: tuple[float, ...]

    @property
    def seconds_training(self) -> float:
        return sum(self.seconds)

    @property
    def as_of(self) -> Scores:
        return self.readings.as_of

    @property
    def recalculated(self) -> Scores:
        return self.readings.recalculated


def run(learner: Learner, data: Dataset, plan: AnyPlan, order: int | None = None) -> Run:
    """Fits every window of a plan in turn and scores it; the learner never gets a test row."""
    generations: list[Generation] = []
    seconds: list[float] = []
    used = as_used(data, plan, order)
    scoring = Scoring({class_id: used.test(class_id) for class_id in used.class_ids})
    for window in windows(data, plan, order):
        started = perf_counter()
        generations.append(following(generations[-1] if generations else None, learner.fit(window)))
        seconds.append(perf_counter() - started)
        scoring.add(generations[-1])
    return Run(tuple(generations), scoring.readings(), tuple(seconds))
