"""Settings: which classes a task describes, and which it brings examples of. The three of the paper are here.

static: the first task describes every class; each task brings the examples of one slice of the class list.
dynamic: each task describes new seen and new unseen classes; an unseen class stays unseen.
online: as dynamic, but the last of a task's new seen classes is held back: described now, learned in the next task.
The trickle setting is in `trickle`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from stream_cgzsl.benchmark import paper
from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.task import Task
from stream_cgzsl.benchmark.trickle import TricklePlan, trickle_tasks
from stream_cgzsl.errors import UsageError
from stream_cgzsl.windows.window import Window

SETTINGS = ("static", "dynamic", "online")
"""Those of the paper, for `plan_for`."""

_BANKING77 = {"tasks": 6, "seen": 10, "unseen": 2}
_TASKS = range(5, 11)
"""How many tasks other data gets, where it has enough classes."""


@dataclass(frozen=True)
class Plan:
    """How many tasks there are, and how many classes of each pool a task brings. Classes that remain are not used.

    Of a task's classes from the seen pool, `held_back` are only described; their examples come with the next task.
    In the static setting all classes are one pool, and `seen` of them are learned per task; classes that remain are
    described with the others.
    """

    setting: str
    tasks: int
    seen: int
    unseen: int = 0
    held_back: int = 0

    def __str__(self) -> str:
        return f"{self.setting} {self.tasks}x({self.seen}+{self.unseen})"


AnyPlan: TypeAlias = Plan | TricklePlan


def plan_for(
    data: Dataset, setting: str, tasks: int | None = None, seen: int | None = None, unseen: int | None = None
) -> Plan:
    """The paper's plan for its data sets, ours for BANKING77, an even division of the pools for others.

    Sizes that are given replace these; with `tasks` alone a known plan just ends earlier. Raises `UsageError` when the
    data has too few classes.
    """
    if setting not in SETTINGS:
        raise UsageError(f"unknown setting {setting!r}; the settings are {', '.join(SETTINGS)}")
    if setting == "static" and unseen:
        raise UsageError("in the static setting every class is learned: leave --unseen out")
    for flag, value, least in (("--tasks", tasks, 1), ("--seen", seen, 1), ("--unseen", unseen, 0)):
        if value is not None and value < least:
            raise UsageError(f"{flag} {value}: expected at least {least}")
    held_back = int(setting == "online")
    known = _known(data.name, setting)
    if known is not None and seen is None and unseen is None:
        plan = Plan(setting, tasks or known.tasks, known.seen, known.unseen, held_back)
    else:
        plan = _divided(data, setting, tasks, seen, unseen, held_back)
    _check(data, plan)
    return plan


def _known(name: str, setting: str) -> Plan | None:
    if name.upper() == "BANKING77" and setting != "static":
        return Plan(setting, **_BANKING77)
    found = paper.splits(setting).get(name)
    if found is None:
        return None
    converted = found["converted"]  # the paper counts them among the unseen classes of their first task
    return Plan(setting, found["tasks"], found["seen"] + converted, found["unseen"] - converted)


def _divided(
    data: Dataset, setting: str, tasks: int | None, seen: int | None, unseen: int | None, held_back: int
) -> Plan:
    """As many tasks as the sizes allow; without sizes, an even division."""
    seen_pool, unseen_pool = map(len, _pools(data, setting))
    if unseen == 0:
        unseen_pool = 0
    if tasks is None:
        limits = [pool // size for pool, size in ((seen_pool, seen), (unseen_pool, unseen)) if size]
        tasks = max(1, min(limits)) if limits else _even(seen_pool, unseen_pool, held_back)
    return Plan(
        setting,
        tasks,
        seen_pool // tasks if seen is None else seen,
        unseen_pool // tasks if unseen is None else unseen,
        held_back,
    )


def _even(seen_pool: int, unseen_pool: int, held_back: int) -> int:
    """The number of tasks that leaves the fewest classes unused; fewer than five only where classes are too few."""
    most = min([seen_pool // (1 + held_back), *([unseen_pool] if unseen_pool else [])])
    possible = [number for number in _TASKS if number <= most] or [max(1, most)]
    return min(possible, key=lambda number: (seen_pool % number + unseen_pool % number, -number))


def _check(data: Dataset, plan: Plan) -> None:
    pools = _pools(data, plan.setting)
    for pool, size, kind in zip(pools, (plan.seen, plan.unseen), ("seen", "unseen"), strict=True):
        if plan.tasks * size > len(pool):
            raise UsageError(
                f"{data.name} has {len(pool)} {kind} classes, too few for {plan.tasks} tasks of {size}; "
                f"choose fewer --tasks or a smaller --{kind}"
            )
    if plan.seen <= plan.held_back:
        raise UsageError(
            f"{data.name}: {plan.tasks} tasks of {plan.seen} seen classes leave nothing to learn in the {plan.setting} "
            f"setting; expected at least {plan.held_back + 1} per task: choose fewer --tasks or a larger --seen"
        )


def tasks(data: Dataset, plan: AnyPlan, order: int | None = None) -> tuple[Task, ...]:
    """Tasks 1 to n. `order` is a seed that permutes each pool; None keeps the order of the files.

    In the trickle setting it is the seed of the whole draw, 0 if None.
    """
    if isinstance(plan, TricklePlan):
        return trickle_tasks(data, plan, order or 0)
    seen, unseen = (list(pool) for pool in _pools(data, plan.setting))
    if order is not None:
        random = np.random.default_rng(order)
        seen = [seen[i] for i in random.permutation(len(seen))]
        unseen = [unseen[i] for i in random.permutation(len(unseen))]
    held_back: list[str] = []
    made: list[Task] = []
    for number in range(1, plan.tasks + 1):
        fresh = seen[(number - 1) * plan.seen : number * plan.seen]
        described = fresh + unseen[(number - 1) * plan.unseen : number * plan.unseen]
        if plan.setting == "static":
            described = seen if number == 1 else []
        learned_now = plan.seen - plan.held_back
        made.append(Task(number, tuple(described), tuple(held_back + fresh[:learned_now])))
        held_back = fresh[learned_now:]
    return tuple(made)


def as_used(data: Dataset, plan: AnyPlan, order: int | None = None) -> Dataset:
    """The data with the training and test rows that a plan uses.

    In the static setting, classes that belong to no task are described but never learned. They are not tested either:
    the paper's unseen test classes are those of future tasks.
    """
    data = data.under(plan.setting)
    if plan.setting != "static":
        return data
    learned = [data.label(class_id) for task in tasks(data, plan, order) for class_id in task.learned]
    return replace(data, test_seen=data.test_seen[np.isin(data.labels[data.test_seen], learned)])


def windows(data: Dataset, plan: AnyPlan, order: int | None = None) -> Iterator[Window]:
    """The tasks as windows 1 to n, built one at a time."""
    data = data.under(plan.setting)
    for task in tasks(data, plan, order):
        yield Window.from_arrays(
            task.number,
            {class_id: data.vector(class_id) for class_id in task.described},
            {class_id: data.features[task.examples(data, class_id)] for class_id in task.learned},
        )


def _pools(data: Dataset, setting: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The classes that are learned at some point and those that never are, each in the order of the files."""
    data = data.under(setting)
    return data.seen_pool, data.unseen_pool
