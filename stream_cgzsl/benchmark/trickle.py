"""The trickle setting: classes are described over time, and examples come one by one, most of them of a few classes.

Class frequencies are Zipf-like, 1 / (1 + rank), with ranks drawn at random; a share of the classes never gets an
example. Many real streams look like this; the paper has no such setting. Every class has training and test rows, as in
the static setting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.task import Task
from stream_cgzsl.errors import UsageError

TRICKLE = "trickle"

_KNOWN = {"CUB": (20, 100), "BANKING77": (15, 50)}
_WINDOWS = 20
_NEVER_SHARE = 0.2


@dataclass(frozen=True)
class TricklePlan:
    """`tasks` windows of `window_size` examples; `never_share` of the classes get none."""

    tasks: int
    window_size: int
    never_share: float = _NEVER_SHARE
    setting: str = TRICKLE

    def __str__(self) -> str:
        return f"{self.setting} {self.tasks}x{self.window_size} never {self.never_share:g}"


def trickle_for(
    data: Dataset, tasks: int | None = None, window_size: int | None = None, never_share: float | None = None
) -> TricklePlan:
    """Our plan for CUB and BANKING77; about ten examples per class in twenty windows for other data.

    Values that are given replace these. Raises `UsageError` when the data has too few examples.
    """
    for flag, value in (("--windows", tasks), ("--window-size", window_size)):
        if value is not None and value < 1:
            raise UsageError(f"{flag} {value}: expected at least 1")
    rows, classes = len(data.under(TRICKLE).train), len(data.class_ids)
    if data.name.upper() in _KNOWN:
        known_tasks, known_size = _KNOWN[data.name.upper()]
        plan = TricklePlan(tasks or known_tasks, window_size or known_size)
    else:
        tasks = tasks or min(_WINDOWS, rows)
        plan = TricklePlan(tasks, window_size or max(1, min(classes // 2, rows // tasks)))
    if never_share is not None:
        plan = TricklePlan(plan.tasks, plan.window_size, never_share)
    if not 0 <= plan.never_share < 1 or round(plan.never_share * classes) >= classes:
        raise UsageError(
            f"--never-share {plan.never_share:g}: expected a number from 0 that leaves some of the {classes} classes "
            f"of {data.name} with examples"
        )
    if plan.tasks * plan.window_size > rows:
        raise UsageError(
            f"{data.name} has {rows} training rows, too few for {plan.tasks} windows of {plan.window_size} examples; "
            "choose fewer --windows or a smaller --window-size"
        )
    return plan


def trickle_tasks(data: Dataset, plan: TricklePlan, seed: int = 0) -> tuple[Task, ...]:
    """Tasks 1 to n; `seed` draws the order of the classes, their frequencies and every example.

    The first three quarters of the windows describe the classes, evenly. Every window draws its examples among the
    classes described so far, by their frequencies, without repeating a row; a class whose rows are used up gives no
    more, and a window without any left stays short.
    """
    data = data.under(TRICKLE)
    random = np.random.default_rng(seed)
    classes = [data.class_ids[i] for i in random.permutation(len(data.class_ids))]
    taught = random.permutation(len(classes))[round(plan.never_share * len(classes)) :]
    frequency = {classes[place]: 1 / (1 + rank) for rank, place in enumerate(taught)}
    left = {c: [int(row) for row in random.permutation(data.training_rows(c))] for c in classes if c in frequency}
    known = 0
    made: list[Task] = []
    for number in range(1, plan.tasks + 1):
        until = min(len(classes), -(-4 * len(classes) * number // (3 * plan.tasks)))
        described, known = classes[known:until], until
        rows: dict[str, list[int]] = {}
        for _ in range(plan.window_size):
            possible = [c for c in classes[:known] if left.get(c)]
            if not possible:
                break
            weights = np.array([frequency[c] for c in possible])
            class_id = possible[int(random.choice(len(possible), p=weights / weights.sum()))]
            rows.setdefault(class_id, []).append(left[class_id].pop())
        learned = tuple(sorted(rows))
        made.append(Task(number, tuple(described), learned, {c: tuple(rows[c]) for c in learned}))
    return tuple(made)
