"""Forgetting: how far the accuracies of seen classes are below their best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

import numpy as np

ClassAccuracies = Mapping[str, float]
"""By class id."""


def forgetting(best: ClassAccuracies, learned: Set[str], now: ClassAccuracies) -> float | None:
    """The mean of best minus now over the seen classes that have both; a class at a new best counts as 0.

    `best` comes from the previous evaluation, so a class counts from its second evaluation as a seen class. None while
    there is no such class.
    """
    losses = [max(0.0, best[class_id] - now[class_id]) for class_id in sorted(best.keys() & now.keys() & learned)]
    return float(np.mean(losses)) if losses else None


def best_since_learned(best: ClassAccuracies, learned: Set[str], now: ClassAccuracies) -> dict[str, float]:
    """The best accuracies after this evaluation, by class id in order.

    A class that is no longer seen (retired, or rolled back to its description) is left out: if it is learned again, it
    starts from scratch.
    """
    known = sorted((best.keys() | now.keys()) & learned)
    return {class_id: max(best.get(class_id, 0.0), now.get(class_id, 0.0)) for class_id in known}


def task_forgetting(seen: Sequence[Set[str]], found: Sequence[ClassAccuracies]) -> float | None:
    """Forgetting by task, as continual learning measures it: the mean over all tasks but the last of the best accuracy

    before the last evaluation minus that of the last one. It is negative where a task is better than it ever was.
    `seen` are the seen classes as of each evaluation and `found` the accuracies. A task's classes are those that are
    first seen in it, and its accuracy is their mean. None where no task can be compared.
    """
    losses = []
    known: set[str] = set()
    for first, learned in enumerate(seen):
        task, known = learned - known, known | learned
        means = [_mean(now[class_id] for class_id in task & now.keys()) for now in found[first:]]
        before = [accuracy for accuracy in means[:-1] if accuracy is not None]
        if before and means[-1] is not None:
            losses.append(max(before) - means[-1])
    return _mean(losses)


def _mean(values: Iterable[float]) -> float | None:
    there = list(values)
    return float(np.mean(there)) if there else None
