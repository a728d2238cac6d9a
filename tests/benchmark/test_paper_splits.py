"""The tasks of the five benchmarks agree with the paper's table of splits, task by task."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_data import data, with_official_splits

from stream_cgzsl.benchmark import paper
from stream_cgzsl.benchmark.datasets import Dataset, data_folder
from stream_cgzsl.benchmark.datasets.known import KNOWN
from stream_cgzsl.benchmark.protocols import SETTINGS, Plan, plan_for, tasks
from stream_cgzsl.benchmark.task import Task

TABLE = {
    ("aPY", "static"): [(0, 8, 24), (8, 8, 16), (16, 8, 8)],
    ("aPY", "dynamic"): [(0, 5, 3), (5, 5, 6), (10, 5, 9)],
    ("aPY", "online"): [(0, 4, 4), (4, 5, 7), (9, 5, 10)],
    ("AWA1", "static"): [(0, 10, 40), (10, 10, 30), (20, 10, 20)],
    ("AWA1", "dynamic"): [(0, 8, 2), (8, 8, 4), (16, 8, 6)],
    ("AWA1", "online"): [(0, 7, 3), (7, 8, 5), (15, 8, 7)],
    ("AWA2", "static"): [(0, 10, 40), (10, 10, 30), (20, 10, 20)],
    ("AWA2", "dynamic"): [(0, 8, 2), (8, 8, 4), (16, 8, 6)],
    ("AWA2", "online"): [(0, 7, 3), (7, 8, 5), (15, 8, 7)],
    ("CUB", "static"): [(0, 10, 190), (10, 10, 180), (20, 10, 170)],
    ("CUB", "dynamic"): [(0, 7, 2), (7, 7, 4), (14, 7, 6)],
    ("CUB", "online"): [(0, 6, 3), (6, 7, 5), (13, 7, 7)],
    ("SUN", "static"): [(0, 47, 670), (47, 47, 623), (94, 47, 576)],
    ("SUN", "dynamic"): [(0, 43, 4), (43, 43, 8), (86, 43, 12)],
    ("SUN", "online"): [(0, 42, 5), (42, 43, 9), (85, 43, 13)],
}
"""Replayed and new seen classes, and unseen classes, of the first three tasks, as printed in the paper."""

LAST = {
    ("aPY", "static"): (4, 24, 8, 0),
    ("aPY", "dynamic"): (4, 15, 5, 12),
    ("aPY", "online"): (4, 14, 5, 13),
    ("AWA1", "static"): (5, 40, 10, 0),
    ("AWA1", "dynamic"): (5, 32, 8, 10),
    ("AWA1", "online"): (5, 31, 8, 11),
    ("AWA2", "static"): (5, 40, 10, 0),
    ("AWA2", "dynamic"): (5, 32, 8, 10),
    ("AWA2", "online"): (5, 31, 8, 11),
    ("CUB", "static"): (20, 190, 10, 0),
    ("CUB", "dynamic"): (20, 133, 7, 40),
    ("CUB", "online"): (20, 132, 7, 41),
    ("SUN", "static"): (15, 658, 47, 12),  # 12 of the 717 are of no task
    ("SUN", "dynamic"): (15, 602, 43, 60),
    ("SUN", "online"): (15, 601, 43, 61),
}
"""How many tasks, and the counts of the last one."""


def counts(made: tuple[Task, ...]) -> list[tuple[int, int, int]]:
    """Replayed, new and unseen classes of each task."""
    described: set[str] = set()
    learned: set[str] = set()
    found = []
    for task in made:
        described |= set(task.described)
        replayed = len(learned)
        learned |= set(task.learned)
        found.append((replayed, len(task.learned), len(described - learned)))
    return found


@pytest.mark.parametrize(("name", "setting"), TABLE, ids="-".join)
def test_tasks_have_the_papers_counts(name: str, setting: str) -> None:
    known = data(KNOWN[name].seen, KNOWN[name].unseen, name)
    found = counts(tasks(known, plan_for(known, setting)))
    number, *last = LAST[name, setting]
    assert (found[:3], len(found), found[-1]) == (TABLE[name, setting], number, tuple(last))


@pytest.fixture(params=["AWA1", "AWA2", "APY", "CUB", "SUN"])
def official(request: pytest.FixtureRequest, tmp_path: Path) -> Dataset:
    """A benchmark with its published splits."""
    if not (data_folder() / request.param / "att_splits.mat").is_file():
        pytest.skip(f"the splits of {request.param} are not in {data_folder()}; CGZSL_DATA can name another folder")
    return with_official_splits(request.param, tmp_path)


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_published_splits_have_rows_for_every_task(official: Dataset, setting: str) -> None:
    made = tasks(official, plan_for(official, setting))
    assert counts(made)[:3] == TABLE[official.name, setting]
    used = official.under(setting)
    learned = [class_id for task in made for class_id in task.learned]
    assert len(set(learned)) == len(learned)
    assert [c for c in learned if not (len(used.training_rows(c)) and len(used.test_rows(c)))] == []


def test_a_held_back_class_is_the_last_of_its_task_and_the_first_of_the_next() -> None:
    cub = data(150, 50, "CUB")
    first, second, *_ = tasks(cub, plan_for(cub, "online"))
    assert plan_for(cub, "online") == Plan("online", tasks=20, seen=7, unseen=2, held_back=1)
    assert (first.described, first.learned) == (cub.class_ids[:7] + cub.class_ids[150:152], cub.class_ids[:6])
    assert (second.described, second.learned) == (cub.class_ids[7:14] + cub.class_ids[152:154], cub.class_ids[6:13])


# ---- its figures


def test_the_papers_rows_end_with_its_own_method() -> None:
    rows = paper.paper_rows("CUB", "online")
    assert [row.system for row in rows][-2:] == ["NM-ZSL", "Ours"]
    assert rows[-1].figures.model_dump() == {"mSA": 44.09, "mUA": 53.57, "mH": 48.03}
    assert rows[0].system == "EWC" and rows[0].figures.model_dump() == {"mSA": 38.64, "mUA": None, "mH": None}


def test_systems_without_any_figure_are_left_out() -> None:
    assert "AGEM" not in [row.system for row in paper.paper_rows("aPY", "online")]


@pytest.mark.parametrize(("name", "setting"), TABLE, ids="-".join)
def test_the_paper_has_figures_for_all_its_data(name: str, setting: str) -> None:
    own = paper.paper_rows(name, setting)[-1]
    assert own.system == "Ours" and None not in own.figures.model_dump().values()


def test_other_data_has_no_rows() -> None:
    assert paper.paper_rows("BANKING77", "online") == paper.paper_ablation("SUN") == ()
    assert paper.paper_forgetting("SUN", "online") == {}


def test_the_papers_ablation_and_forgetting() -> None:
    assert [row.system for row in paper.paper_ablation("CUB")] == [
        "Ours",
        "Ours w/o replay",
        "Ours w/o L_sal",
        "Ours w/o L_nuclear",
        "Ours w/o L_sal and L_nuclear",
        "Ours w/o L_rcl and L_pcl",
        "Ours w/o L_snl",
        "Ours w/o replay, L_rcl and L_pcl",
    ]
    assert paper.paper_forgetting("CUB", "online")["Ours"] == 0.11
