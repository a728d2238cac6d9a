"""The three settings of the paper: which classes a task describes, and which it brings features of.

static: every class is described in the first task, each task brings the features of one slice of the class list.
dynamic: each task describes new seen and new unseen classes; an unseen class stays unseen.
online: as dynamic, but of a task's new seen classes the last is held back: described now, learned in the next task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stream_cgzsl.benchmark import paper
from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.errors import UsageError
from stream_cgzsl.windows.window import Window

SETTINGS = ("static", "dynamic", "online")

_BANKING77 = {"tasks": 6, "seen": 10, "unseen": 2}
_TASKS = range(5, 11)
"""How many tasks data gets that nobody has a plan for, if it has the classes."""


@dataclass(frozen=True)
class Task:
    """Task `number`, from 1: the classes it describes and those it brings features of, in the order they come."""

    number: int
    described: tuple[str, ...]
    learned: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """How many tasks, and how many classes of either pool each brings. What is left over of a pool is left out.

    Of a task's classes from the seen pool, `held_back` are only described; their features come with the next task.
    In the static setting all classes are one pool, and `seen` of them are learned in each task; what is left over is
    described with the others.
    """

    setting: str
    tasks: int
    seen: int
    unseen: int = 0
    held_back: int = 0

    def __str__(self) -> str:
        return f"{self.setting} {self.tasks}x({self.seen}+{self.unseen})"


def plan_for(
    data: Dataset, setting: str, tasks: int | None = None, seen: int | None = None, unseen: int | None = None
) -> Plan:
    """The paper's plan for its data sets, ours for BANKING77, an even division of the pools for others.

    What is given replaces what would be taken; with `tasks` alone a known plan just ends earlier. Raises `UsageError`
    when the data has too few classes.
    """
    if setting not in SETTINGS:
        raise UsageError(f"no such setting: {setting!r}; the settings are {', '.join(SETTINGS)}")
    if setting == "static" and unseen:
        raise UsageError("the static setting has no unseen classes of its own: leave --unseen out")
    for flag, value, least in (("--tasks", tasks, 1), ("--seen", seen, 1), ("--unseen", unseen, 0)):
        if value is not None and value < least:
            raise UsageError(f"{flag} {value}: at least {least} is expected")
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
    converted = found["converted"]  # which the paper counts among the unseen classes of their first task
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
    """The number of tasks that leaves the fewest classes out; fewer than five only where there are too few classes."""
    most = min([seen_pool // (1 + held_back), *([unseen_pool] if unseen_pool else [])])
    possible = [number for number in _TASKS if number <= most] or [max(1, most)]
    return min(possible, key=lambda number: (seen_pool % number + unseen_pool % number, -number))


def _check(data: Dataset, plan: Plan) -> None:
    pools = _pools(data, plan.setting)
    for pool, size, kind in zip(pools, (plan.seen, plan.unseen), ("seen", "unseen"), strict=True):
        if plan.tasks * size > len(pool):
            raise UsageError(
                f"{data.name} has {len(pool)} {kind} classes: too few for {plan.tasks} tasks of {size}; "
                f"choose fewer --tasks or a smaller --{kind}"
            )
    if plan.seen <= plan.held_back:
        raise UsageError(
            f"{data.name}: {plan.tasks} tasks of {plan.seen} seen classes leave nothing to learn in the {plan.setting} "
            f"setting; at least {plan.held_back + 1} a task are expected"
        )


def tasks(data: Dataset, plan: Plan, order: int | None = None) -> tuple[Task, ...]:
    """Tasks 1 to n. `order` is a seed that permutes each pool; None takes the order of the files."""
    seen, unseen = (list(pool) for pool in _pools(data, plan.setting))
    if order is not None:
        shuffle = np.random.default_rng(order)
        seen = [seen[i] for i in shuffle.permutation(len(seen))]
        unseen = [unseen[i] for i in shuffle.permutation(len(unseen))]
    waiting: list[str] = []
    made: list[Task] = []
    for number in range(1, plan.tasks + 1):
        fresh = seen[(number - 1) * plan.seen : number * plan.seen]
        described = fresh + unseen[(number - 1) * plan.unseen : number * plan.unseen]
        if plan.setting == "static":
            described = seen if number == 1 else []
        now = plan.seen - plan.held_back
        made.append(Task(number, tuple(described), tuple(waiting + fresh[:now])))
        waiting = fresh[now:]
    return tuple(made)


def as_used(data: Dataset, plan: Plan, order: int | None = None) -> Dataset:
    """The data as a plan uses it: which rows train and test.

    In the static setting, classes of no task are described with all others and never learned. They are not tested
    either: the paper tests unseen classes with the data of future tasks.
    """
    data = data.under(plan.setting)
    if plan.setting != "static":
        return data
    learned = [data.label(class_id) for task in tasks(data, plan, order) for class_id in task.learned]
    return replace(data, test_seen=data.test_seen[np.isin(data.labels[data.test_seen], learned)])


def windows(data: Dataset, plan: Plan, order: int | None = None) -> Iterator[Window]:
    """The tasks as windows 1 to n, made one at a time."""
    data = data.under(plan.setting)
    for task in tasks(data, plan, order):
        yield Window.from_arrays(
            task.number,
            {class_id: data.vector(class_id) for class_id in task.described},
            {class_id: data.training(class_id) for class_id in task.learned},
        )


def _pools(data: Dataset, setting: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The classes that are learned at some time and those that never are, each in the order of the files."""
    data = data.under(setting)
    return data.seen_pool, data.unseen_pool
