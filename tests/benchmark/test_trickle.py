"""The trickle setting: its plans, its draw, its figures, and the same results through a stream as without one."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import read, sqlite_url
from small_data import data as small
from small_runs import Watcher, asked, digests, done

from stream_cgzsl.benchmark import scores
from stream_cgzsl.benchmark.datasets import load
from stream_cgzsl.benchmark.feeding import ROLES, Feeder
from stream_cgzsl.benchmark.protocols import as_used, tasks, windows
from stream_cgzsl.benchmark.runs.folder import RunFolder
from stream_cgzsl.benchmark.runs.offline import run_offline
from stream_cgzsl.benchmark.runs.request import RunRequest
from stream_cgzsl.benchmark.runs.run import run
from stream_cgzsl.benchmark.task import Task
from stream_cgzsl.benchmark.trickle import TricklePlan, trickle_for, trickle_tasks
from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners import create
from stream_cgzsl.schemas import decode

DATA = load("synthetic:classes=16,unseen=4,attributes=8,features=16,rows=20,test=6")
PLAN = TricklePlan(tasks=5, window_size=16, never_share=0.25)
TOPICS = Topics("fed")


# ---- plans


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("CUB", {}, TricklePlan(20, 100)),
        ("BANKING77", {"tasks": 3}, TricklePlan(3, 50)),
        ("synthetic", {}, TricklePlan(20, 8)),
        ("synthetic", {"tasks": 4, "window_size": 5, "never_share": 0.0}, TricklePlan(4, 5, 0.0)),
        ("synthetic", {"tasks": 64}, TricklePlan(64, 4)),  # as many as there are rows for
    ],
)
def test_plans(name: str, given: dict[str, Any], expected: TricklePlan) -> None:
    many = DATA if name == "synthetic" else load("synthetic:classes=60,unseen=0,attributes=2,features=2,test=0")
    assert trickle_for(replace(many, name=name), **given) == expected


def test_data_with_very_few_rows_has_a_plan() -> None:
    assert trickle_for(small(2, 0)) == TricklePlan(4, 1)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"tasks": 0}, "--windows 0: expected at least 1"),
        ({"window_size": 0}, "--window-size 0: expected at least 1"),
        ({"never_share": 1.0}, "--never-share 1: expected a number from 0 that leaves some of the 9 classes of SMALL"),
        ({"never_share": 0.95}, "--never-share 0.95: expected"),
        ({"never_share": -0.1}, "--never-share -0.1: expected"),
        ({"never_share": float("nan")}, "--never-share nan: expected"),
        (
            {"tasks": 5, "window_size": 5},
            "SMALL has 24 training rows, too few for 5 windows of 5 examples; choose fewer --windows or a smaller "
            "--window-size",
        ),
    ],
)
def test_an_impossible_plan_is_refused(given: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError) as caught:
        trickle_for(small(6, 3), **given)
    assert str(caught.value).startswith(error)


def test_plans_that_differ_are_told_apart() -> None:
    plans = [PLAN, replace(PLAN, tasks=6), replace(PLAN, window_size=15), replace(PLAN, never_share=0.3)]
    requests = [replace(asked(), plan=plan) for plan in plans]
    assert len({str(plan) for plan in plans}) == len({json.dumps(request.identity()) for request in requests}) == 4
    assert str(PLAN) == "trickle 5x16 never 0.25"


# ---- the draw


def test_the_draw_is_the_one_behind_the_published_figures() -> None:
    first, *_ = trickle_tasks(small(4, 2), TricklePlan(4, 3), seed=0)
    assert first == Task(1, ("s003", "s002"), ("s002", "s003"), {"s002": (7, 6), "s003": (10,)})


def test_every_class_is_described_once_in_the_first_three_quarters() -> None:
    made = trickle_tasks(DATA, PLAN)
    described = [class_id for task in made for class_id in task.described]
    assert sorted(described) == sorted(DATA.class_ids)
    assert [len(task.described) for task in made] == [5, 4, 4, 3, 0]


def test_a_row_comes_once_and_is_a_training_row_of_a_class_described_by_then() -> None:
    used, known, brought = as_used(DATA, PLAN), set[str](), Counter[int]()
    for task in trickle_tasks(DATA, PLAN):
        known |= set(task.described)
        assert set(task.learned) == set(task.rows) <= known
        for class_id, rows in task.rows.items():
            assert set(rows) <= set(used.training_rows(class_id).tolist())
            brought.update(rows)
    assert set(brought.values()) == {1}
    assert sum(brought.values()) == PLAN.tasks * PLAN.window_size


@pytest.mark.parametrize(("share", "never"), [(0.0, 0), (0.25, 4), (0.5, 8)])
def test_a_share_of_the_classes_never_gets_an_example(share: float, never: int) -> None:
    plan = TricklePlan(10, 20, share)  # enough for every other class to get one
    made = trickle_tasks(DATA, plan)
    assert len(set(DATA.class_ids) - {class_id for task in made for class_id in task.learned}) == never


def test_a_few_classes_get_most_examples() -> None:
    examples = Counter[str]()
    for task in trickle_tasks(
        load("synthetic:classes=30,unseen=0,attributes=2,features=2,rows=60"), TricklePlan(10, 30)
    ):
        examples.update({class_id: len(rows) for class_id, rows in task.rows.items()})
    counts = sorted(examples.values(), reverse=True)
    assert sum(counts[:5]) > 0.5 * sum(counts)


def test_the_seed_decides_everything() -> None:
    assert tasks(DATA, PLAN) == tasks(DATA, PLAN, order=0) == trickle_tasks(DATA, PLAN, seed=0)
    assert tasks(DATA, PLAN, order=1) != tasks(DATA, PLAN, order=0)


def test_a_class_whose_rows_are_used_up_gives_no_more() -> None:
    made = trickle_tasks(small(3, 0), TricklePlan(2, 3, never_share=0.4))  # two classes of two rows each are taught
    assert sorted(row for task in made for rows in task.rows.values() for row in rows) == sorted(
        row for class_id in {c for task in made for c in task.learned} for row in small(3, 0).training_rows(class_id)
    )
    assert sum(len(rows) for task in made for rows in task.rows.values()) == 4


def test_windows_hold_the_rows_that_are_drawn() -> None:
    for task, window in zip(tasks(DATA, PLAN, 2), windows(DATA, PLAN, 2), strict=True):
        assert sorted(task.described) == [description.class_id for description in window.described]
        assert list(window.features) == list(task.learned)
        for class_id, rows in task.rows.items():
            assert np.array_equal(window.features[class_id].rows, DATA.features[list(rows)])


# ---- figures


def test_classes_are_grouped_by_the_examples_they_have_had() -> None:
    made = scores.run(create("ridge", DATA.space()), DATA, PLAN)
    used = as_used(DATA, PLAN)
    tests = {class_id: used.test(class_id) for class_id in used.class_ids}
    examples: Counter[str] = Counter()
    for number, (task, generation) in enumerate(zip(tasks(DATA, PLAN), made.generations, strict=True)):
        examples.update({class_id: len(rows) for class_id, rows in task.rows.items()})
        right = {
            class_id: 100 * np.mean(generation.scores(tests[class_id]).argmax(axis=1) == place)
            for place, class_id in enumerate(generation.class_ids)
        }
        bounds = {"0": (0, 0), "1-2": (1, 2), "3-5": (3, 5), "6-20": (6, 20), ">20": (21, 999)}
        groups = {
            bucket: [right[c] for c in generation.class_ids if low <= examples[c] <= high]
            for bucket, (low, high) in bounds.items()
        }
        assert made.readings.by_examples[number] == pytest.approx({b: np.mean(g) for b, g in groups.items() if g})
        assert made.readings.overall[number] == pytest.approx(np.mean(list(right.values())))
    of_group = [found["6-20"] for found in made.readings.by_examples if "6-20" in found]
    assert made.readings.mean_by_examples["6-20"] == pytest.approx(np.mean(of_group))
    assert made.readings.mean_overall == pytest.approx(np.mean(made.readings.overall))


# ---- through a stream


def request(learner: str = "closed-form") -> RunRequest:
    return replace(asked(learner=learner), data=DATA, plan=PLAN, order=2)


def metrics(path: Path) -> dict[str, Any]:
    """The metrics of a run, without its times."""
    found = json.loads((path / "metrics.json").read_text())
    return {name: value for name, value in found.items() if not name.startswith("seconds")}


@pytest.mark.slow
def test_a_stream_gives_the_figures_and_digests_of_the_library(tmp_path: Path) -> None:
    asked_for = request("evidence")  # its result does not depend on the order of rows
    streamed = done(tmp_path / "stream", asked_for)
    library = run_offline(asked_for, RunFolder(tmp_path / "library"))
    assert digests(streamed) == digests(library)
    assert metrics(tmp_path / "stream") == metrics(tmp_path / "library")
    for line, expected in zip(streamed.windows, library.windows, strict=True):
        assert (line.described, line.features, line.seen) == (expected.described, expected.features, expected.seen)
        assert (line.overall, line.by_examples) == (expected.overall, expected.by_examples)
    assert (streamed.overall, streamed.by_examples) == (library.overall, library.by_examples)


@pytest.mark.slow
def test_the_metrics_have_means_and_lists(tmp_path: Path) -> None:
    run_offline(request("ridge"), RunFolder(tmp_path))
    found = metrics(tmp_path)
    assert found["overall"] == pytest.approx(np.mean(found["windows"]["overall"]))
    assert list(found["windows"]["by_examples"]) == ["0", "1-2", "3-5", "6-20", ">20"]
    for bucket, figures in found["windows"]["by_examples"].items():
        assert len(figures) == PLAN.tasks
        known = [figure for figure in figures if figure is not None]
        assert found["by_examples"].get(bucket) == (pytest.approx(np.mean(known)) if known else None)


def test_an_interrupted_run_ends_with_the_same_digests(tmp_path: Path) -> None:
    whole = done(tmp_path / "whole", request())
    with pytest.raises(KeyboardInterrupt):
        run(request(), RunFolder(tmp_path / "run"), Watcher("learned 3"))
    assert digests(done(tmp_path / "run", request())) == digests(whole)
    assert metrics(tmp_path / "run") == metrics(tmp_path / "whole")


def test_the_command_reproduces_the_run() -> None:
    sizes = {"tasks": 5, "window_size": 16, "never_share": 0.25}
    command = replace(request(), sizes=sizes).command(Path("out"))
    assert " --setting trickle --out out --tasks 5 --window-size 16 --never-share 0.25 --order-seed 2 " in command


def test_in_the_other_settings_the_metrics_are_as_before(tmp_path: Path) -> None:
    done(tmp_path, asked())
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert set(metrics) & {"overall", "by_examples"} == set()
    assert set(metrics["windows"]) == {"forgetting", "AUSUC"}


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("after", [5, 30, 80, 150])
def test_an_interrupted_feed_resumes_and_sends_nothing_twice(tmp_path: Path, after: int) -> None:
    left = after

    def sent(count: int) -> None:
        nonlocal left
        left -= count
        if left < 0:
            raise Interrupted

    with connect(sqlite_url(tmp_path)) as bus:
        first = Feeder(bus, TOPICS, DATA, PLAN, 2, sent=sent)
        with pytest.raises(Interrupted):
            for task in first.tasks:
                first.feed(task)
        second = Feeder(bus, TOPICS, DATA, PLAN, 2)
        for task in second.tasks[second.fed() :]:
            second.feed(task)
        found = {
            role: Counter(decode(role, r.key, r.value, r.headers).id for r in read(bus, TOPICS[role])) for role in ROLES
        }
        expected = {role: Counter(e.id for task in second.tasks for e in second.events(role, task)) for role in ROLES}
        assert found == expected
        assert sum(map(sum, (counts.values() for counts in found.values()))) == sum(map(second.count, second.tasks))
        with pytest.raises(UsageError, match=r"found '.* trickle 5x16 never 0.25 order 2 task 1'; expected .* order 3"):
            Feeder(bus, TOPICS, DATA, PLAN, 3)


def test_the_holdout_of_a_class_comes_with_its_description(tmp_path: Path) -> None:
    with connect(sqlite_url(tmp_path)) as bus:
        feeder = Feeder(bus, TOPICS, DATA, PLAN)
        task = feeder.tasks[1]
        tested = Counter(event.class_id for event in feeder.events("holdout", task))  # type: ignore[union-attr]
        used = as_used(DATA, PLAN)
        assert tested == {class_id: len(used.test_rows(class_id)) for class_id in task.described}
