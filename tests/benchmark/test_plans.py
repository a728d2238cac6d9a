"""Plans for any data, the tasks of a plan, and the windows of these tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_data import data

from stream_cgzsl.benchmark.protocols import Plan, as_used, plan_for, tasks, windows
from stream_cgzsl.benchmark.task import Task
from stream_cgzsl.errors import UsageError

# ---- plans


@pytest.mark.parametrize(
    ("sizes", "setting", "given", "expected"),
    [
        ((60, 17), "online", {}, Plan("online", 5, 12, 3, 1)),  # 2 classes are left out; 10 tasks would leave 7
        ((60, 20), "dynamic", {}, Plan("dynamic", 10, 6, 2)),
        ((60, 0), "dynamic", {}, Plan("dynamic", 10, 6, 0)),
        ((60, 17), "static", {}, Plan("static", 7, 11)),
        ((60, 3), "dynamic", {}, Plan("dynamic", 3, 20, 1)),
        ((3, 0), "online", {}, Plan("online", 1, 3, 0, 1)),
        ((60, 17), "online", {"tasks": 4}, Plan("online", 4, 15, 4, 1)),
        ((60, 17), "online", {"seen": 5}, Plan("online", 12, 5, 1, 1)),
        ((60, 17), "online", {"unseen": 5}, Plan("online", 3, 20, 5, 1)),
        ((60, 17), "online", {"unseen": 0}, Plan("online", 10, 6, 0, 1)),
        ((60, 17), "online", {"seen": 10, "unseen": 2}, Plan("online", 6, 10, 2, 1)),
        ((60, 17), "online", {"seen": 10, "unseen": 2, "tasks": 3}, Plan("online", 3, 10, 2, 1)),
        ((60, 17), "static", {"seen": 20}, Plan("static", 3, 20)),
    ],
)
def test_other_data_is_divided(sizes: tuple[int, int], setting: str, given: dict[str, int], expected: Plan) -> None:
    assert plan_for(data(*sizes), setting, **given) == expected


@pytest.mark.parametrize(
    ("name", "sizes", "setting", "given", "expected"),
    [
        ("BANKING77", (60, 17), "online", {}, Plan("online", 6, 10, 2, 1)),
        ("BANKING77", (60, 17), "dynamic", {}, Plan("dynamic", 6, 10, 2)),
        ("BANKING77", (60, 17), "static", {}, Plan("static", 7, 11)),
        ("CUB", (150, 50), "online", {"tasks": 3}, Plan("online", 3, 7, 2, 1)),
        ("CUB", (150, 50), "static", {"tasks": 3}, Plan("static", 3, 10)),
        ("CUB", (150, 50), "online", {"seen": 30}, Plan("online", 5, 30, 10, 1)),
    ],
)
def test_a_known_plan_is_taken_and_can_be_changed(
    name: str, sizes: tuple[int, int], setting: str, given: dict[str, int], expected: Plan
) -> None:
    assert plan_for(data(*sizes, name), setting, **given) == expected


@pytest.mark.parametrize(
    ("sizes", "setting", "given", "said"),
    [
        ((6, 3), "sometimes", {}, "unknown setting 'sometimes'; the settings are static, dynamic, online"),
        ((6, 3), "static", {"unseen": 2}, "in the static setting every class is learned: leave --unseen out"),
        ((6, 3), "online", {"tasks": 0}, "--tasks 0: expected at least 1"),
        ((6, 3), "online", {"seen": 0}, "--seen 0: expected at least 1"),
        ((6, 3), "online", {"unseen": -1}, "--unseen -1: expected at least 0"),
        (
            (6, 3),
            "dynamic",
            {"tasks": 2, "seen": 4},
            "SMALL has 6 seen classes, too few for 2 tasks of 4; choose fewer --tasks or a smaller --seen",
        ),
        (
            (6, 3),
            "dynamic",
            {"tasks": 2, "unseen": 2},
            "SMALL has 3 unseen classes, too few for 2 tasks of 2; choose fewer --tasks or a smaller --unseen",
        ),
        (
            (6, 3),
            "online",
            {"tasks": 6},
            "SMALL: 6 tasks of 1 seen classes leave nothing to learn in the online setting; expected at least 2 per "
            "task: choose fewer --tasks or a larger --seen",
        ),
        (
            (2, 3),
            "dynamic",
            {"tasks": 3},
            "SMALL: 3 tasks of 0 seen classes leave nothing to learn in the dynamic setting; expected at least 1 per "
            "task: choose fewer --tasks or a larger --seen",
        ),
    ],
)
def test_an_impossible_plan_is_refused(sizes: tuple[int, int], setting: str, given: dict[str, int], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_for(data(*sizes), setting, **given)
    assert str(caught.value) == said


# ---- tasks


def test_online_a_held_back_class_is_described_now_and_learned_next() -> None:
    assert tasks(data(7, 3), Plan("online", 2, 3, 1, 1)) == (
        Task(1, ("s000", "s001", "s002", "u007"), ("s000", "s001")),
        Task(2, ("s003", "s004", "s005", "u008"), ("s002", "s003", "s004")),
    )


def test_dynamic_an_unseen_class_stays_unseen() -> None:
    assert tasks(data(4, 2), Plan("dynamic", 2, 2, 1)) == (
        Task(1, ("s000", "s001", "u004"), ("s000", "s001")),
        Task(2, ("s002", "s003", "u005"), ("s002", "s003")),
    )


def test_static_all_classes_are_described_at_first_and_a_slice_is_learned_each_time() -> None:
    assert tasks(data(3, 2), Plan("static", 2, 2)) == (
        Task(1, ("s000", "s001", "s002", "u003", "u004"), ("s000", "s001")),
        Task(2, (), ("s002", "u003")),
    )


def permuted(pool: tuple[str, ...], *seeds: Any) -> list[str]:
    shuffle = np.random.default_rng(seeds[0])
    for size in seeds[1:]:
        shuffle.permutation(size)
    return [pool[i] for i in shuffle.permutation(len(pool))]


def test_an_order_permutes_each_pool() -> None:
    """The permutation behind the published figures: the seen pool first, then the unseen one."""
    small = data(20, 9)
    (task,) = tasks(small, Plan("dynamic", 1, 6, 3), order=4)
    seen, unseen = permuted(small.seen_pool, 4), permuted(small.unseen_pool, 4, 20)
    assert (task.learned, task.described) == (tuple(seen[:6]), tuple(seen[:6] + unseen[:3]))


def test_an_order_permutes_the_one_pool_of_the_static_setting() -> None:
    small = data(6, 4)
    first, second = tasks(small, Plan("static", 2, 4), order=4)
    order = permuted(small.class_ids, 4)
    assert (first.described, first.learned, second.learned) == (tuple(order), tuple(order[:4]), tuple(order[4:8]))


# ---- windows and rows


def test_windows_hold_the_tasks_classes_and_their_training_rows() -> None:
    small = data(4, 2)
    found = [
        (w.number, [d.class_id for d in w.described], {c: e.rows[:, 0].tolist() for c, e in w.features.items()})
        for w in windows(small, Plan("online", 2, 2, 1, 1))
    ]
    assert found == [
        (1, ["s000", "s001", "u004"], {"s000": [0, 1]}),
        (2, ["s002", "s003", "u005"], {"s001": [3, 4], "s002": [6, 7]}),
    ]


def test_static_a_class_that_only_had_test_rows_is_learned_from_four_in_five() -> None:
    _, second = windows(data(1, 1), Plan("static", 2, 1))
    assert {c: e.rows[:, 0].tolist() for c, e in second.features.items()} == {"u001": [3, 4, 5, 6]}


def test_static_classes_of_no_task_are_not_tested() -> None:
    plan = Plan("static", 2, 2)
    used = as_used(data(3, 2), plan)
    assert [len(used.test_rows(class_id)) for class_id in used.class_ids] == [1, 1, 1, 1, 0]
    assert tasks(used, plan, order=3) == tasks(data(3, 2), plan, order=3)


def test_in_the_other_settings_the_data_is_used_as_it_is() -> None:
    small = data(3, 2)
    assert as_used(small, Plan("online", 1, 3, 1, 1)) is small
