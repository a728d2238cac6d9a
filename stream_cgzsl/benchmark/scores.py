"""How good a run was: accuracies per class, averaged over classes, then over windows. Nothing is chosen here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.generation import Generation
from stream_cgzsl.learners.interface import Learner
from stream_cgzsl.windows.window import Window


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
        return mean([accuracy.seen for accuracy in self.windows])

    @property
    def mUA(self) -> float | None:
        return mean([accuracy.unseen for accuracy in self.windows])

    @property
    def mH(self) -> float | None:
        return mean([accuracy.harmonic for accuracy in self.windows])

    def __str__(self) -> str:
        return " / ".join("-" if figure is None else f"{figure:.1f}" for figure in (self.mSA, self.mUA, self.mH))


def mean(figures: Iterable[float | None]) -> float | None:
    """The mean of the figures there are."""
    there = [figure for figure in figures if figure is not None]
    return float(np.mean(there)) if there else None


@dataclass(frozen=True)
class Run:
    """What came of streaming a data set through a learner.

    `as_of`: the model after window t, on everything known at t. `recalculated`: the final model on each window's test
    set and label space, with seen and unseen as they were then.
    """

    generations: tuple[Generation, ...]
    as_of: Scores
    recalculated: Scores
    seconds_training: float


def run(learner: Learner, data: Dataset, windows: Iterable[Window]) -> Run:
    """Fits every window in turn; test rows are only ever looked at here."""
    generations: list[Generation] = []
    seconds = 0.0
    for window in windows:
        started = perf_counter()
        generations.append(learner.fit(window))
        seconds += perf_counter() - started
    tests = {class_id: data.test(class_id) for class_id in generations[-1].class_ids}
    final = generations[-1]
    return Run(
        tuple(generations),
        Scores(tuple(accuracy(generation, generation, tests) for generation in generations)),
        Scores(tuple(accuracy(narrowed(final, generation), generation, tests) for generation in generations)),
        seconds,
    )


def accuracy(model: Generation, known: Generation, tests: Mapping[str, npt.NDArray[Any]]) -> Accuracy:
    """How `model` does on the classes of `known`, grouped as `known` had them seen or unseen."""
    groups: dict[bool, list[float | None]] = {True: [], False: []}
    index = {class_id: i for i, class_id in enumerate(model.class_ids)}
    for class_id, seen in zip(known.class_ids, known.seen, strict=True):
        rows = tests[class_id]
        if len(rows):
            right = model.classify(rows).indices[:, 0] == index[class_id]
            groups[bool(seen)].append(100 * float(right.mean()))
    return Accuracy(seen=mean(groups[True]), unseen=mean(groups[False]))


def narrowed(model: Generation, known: Generation) -> Generation:
    """The model with the label space of an earlier generation, as far as its classes still live."""
    kept = np.isin(model.class_ids, known.class_ids)
    return replace(
        model,
        class_ids=tuple(c for c, keep in zip(model.class_ids, kept, strict=True) if keep),
        seen=model.seen[kept],
        vectors=model.vectors[kept],
        biases=model.biases[kept],
    )
