"""Few-shot: what the first examples of a described class do to its accuracy, and to that of the others.

All classes are described and the seen ones learned, in one window. Then half of the unseen classes get k examples each,
in a second window, and the others stay unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.errors import UsageError
from stream_cgzsl.evaluation.answers import accuracies, classify, in_batches
from stream_cgzsl.learners.interface import Learner
from stream_cgzsl.report.document import Shot
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.generation import Generation, following
from stream_cgzsl.windows.window import Window

SHOTS = (0, 1, 2, 3, 5, 10, 20)
"""Numbers of examples that are compared, unless others are given."""


@dataclass(frozen=True)
class Draw:
    """Which unseen classes get examples, and which rows are examples: the same test rows for every k."""

    given: Mapping[str, Array]  # class -> its examples in the order they come, [examples, features]
    tests: Mapping[str, Array]  # class -> its test rows


def shots_for(data: Dataset, shots: Sequence[int] | None = None) -> tuple[int, ...]:
    """These numbers of examples; by default those of `SHOTS` that the data allows. Raises `UsageError`."""
    if len(data.unseen_pool) < 2:
        raise UsageError(
            f"{data.name} has {len(data.unseen_pool)} classes that only have test rows; few-shot needs at least 2: one "
            "that gets examples, and one that does not"
        )
    most = min(len(data.test_rows(class_id)) for class_id in data.unseen_pool) // 2
    if shots is None:
        return tuple(k for k in SHOTS if k <= most)
    if max(shots) > most:
        raise UsageError(
            f"--shots {max(shots)}: an unseen class of {data.name} has too few rows for that: half of them are for "
            f"testing; choose at most {most}"
        )
    return tuple(sorted(shots))


def draw(data: Dataset, seed: int, most: int = max(SHOTS)) -> Draw:
    """Draws classes, and up to `most` examples of each; at least half of a class's rows are for testing."""
    random = np.random.default_rng(seed)
    unseen = [data.unseen_pool[i] for i in random.permutation(len(data.unseen_pool))]
    tests = {class_id: data.test(class_id) for class_id in (*data.seen_pool, *unseen)}
    given: dict[str, Array] = {}
    for class_id in unseen[: (len(unseen) + 1) // 2]:
        rows = tests[class_id][random.permutation(len(tests[class_id]))]
        examples = min(most, len(rows) // 2)
        given[class_id], tests[class_id] = rows[:examples], rows[examples:]
    return Draw(given, tests)


def few_shot(
    learner: Learner, data: Dataset, draws: Iterable[Draw], shots: Sequence[int] = SHOTS
) -> Iterator[tuple[Shot, ...]]:
    """One curve per draw. `learner` must be untrained; it learns the seen classes once."""
    described = {class_id: data.vector(class_id) for class_id in (*data.seen_pool, *data.unseen_pool)}
    first = Window.from_arrays(1, described, {c: data.training(c) for c in data.seen_pool})
    before = following(None, learner.fit(first))
    snapshot = learner.snapshot()
    for drawn in draws:
        curve: list[Shot] = []
        for k in shots:
            generation = before
            if k:
                learner.restore(snapshot)
                window = Window.from_arrays(2, {}, {c: rows[:k] for c, rows in drawn.given.items()})
                generation = following(before, learner.fit(window))
            curve.append(_shot(k, generation, data, drawn))
        yield tuple(curve)


def _shot(k: int, generation: Generation, data: Dataset, drawn: Draw) -> Shot:
    found = accuracies(generation, classify(generation, in_batches(generation.class_ids, drawn.tests))).per_class

    def mean(classes: Iterable[str]) -> float:
        return 100 * fmean(found[class_id] for class_id in classes if class_id in found)

    rest = [class_id for class_id in data.unseen_pool if class_id not in drawn.given]
    return Shot(k=k, seen=mean(data.seen_pool), given=mean(drawn.given), rest=mean(rest))


def mean_curve(curves: Sequence[Sequence[Shot]]) -> tuple[Shot, ...]:
    """The mean over draws, for each k."""
    return tuple(
        Shot(k=same[0].k, **{name: fmean(getattr(shot, name) for shot in same) for name in ("seen", "given", "rest")})
        for same in zip(*curves, strict=True)
    )
