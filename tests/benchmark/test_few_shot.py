"""Few-shot: what is drawn and learned, and the study that compares learners."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_data import data as small

from stream_cgzsl.benchmark.datasets import load
from stream_cgzsl.benchmark.few_shot import SHOTS, draw, few_shot, mean_curve, shots_for
from stream_cgzsl.benchmark.runs.folder import RunFolder
from stream_cgzsl.benchmark.studies.few_shot import run_few_shot
from stream_cgzsl.benchmark.studies.table import study_table
from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners import create
from stream_cgzsl.report.document import Shot, StudyDocument
from stream_cgzsl.report.page import render
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.serving.generation import Generation

pytestmark = pytest.mark.slow

DATA = load("synthetic:classes=12,unseen=5,attributes=6,features=12,rows=10,test=8")


# ---- the protocol


def test_half_of_the_unseen_classes_get_examples_that_are_not_tested() -> None:
    drawn = draw(DATA, 3)
    assert len(drawn.given) == 3 and set(drawn.given) < set(DATA.unseen_pool)
    assert set(drawn.tests) == set(DATA.class_ids)
    for class_id, rows in drawn.tests.items():
        both = np.concatenate([rows, drawn.given.get(class_id, rows[:0])])
        assert len(rows) == (4 if class_id in drawn.given else 8)
        assert sorted(map(tuple, both)) == sorted(map(tuple, DATA.test(class_id)))


def test_the_seed_decides_the_draw() -> None:
    one, again, other = (draw(DATA, seed) for seed in (0, 0, 1))
    assert list(one.given) == ["spotted-marsh-heron", "spotted-reef-fox", "dusky-tundra-heron"]  # of published figures
    assert all(np.array_equal(one.given[class_id], again.given[class_id]) for class_id in one.given)
    assert list(other.given) != list(one.given)


def test_a_class_gets_k_examples_and_everything_starts_over_for_the_next_k() -> None:
    """A learner that records its windows."""
    learned: list[dict[str, int]] = []
    state: list[str] = []

    class Spy:
        def fit(self, window: Any) -> Generation:
            learned.append({class_id: len(examples.rows) for class_id, examples in window.features.items()})
            state.append(f"fit {window.number}")
            ids = tuple(sorted(DATA.class_ids))
            return Generation(1, ids, np.ones(12, bool), np.ones((12, 12)), np.zeros(12), np.zeros(12))

        def snapshot(self) -> str:
            return "after the first window"

        def restore(self, snapshot: str) -> None:
            state.append(snapshot)

    drawn = draw(DATA, 0)
    list(few_shot(Spy(), DATA, [drawn], (0, 1, 3)))  # type: ignore[arg-type]
    assert learned == [
        dict.fromkeys(sorted(DATA.seen_pool), 10),
        *(dict.fromkeys(sorted(drawn.given), k) for k in (1, 3)),
    ]
    assert state == ["fit 1", *("after the first window", "fit 2") * 2]


def test_means_are_over_classes_and_then_over_draws() -> None:
    curves = list(few_shot(create("ridge", DATA.space()), DATA, [draw(DATA, seed) for seed in (0, 1)], (0, 2)))
    assert [[shot.k for shot in curve] for curve in curves] == [[0, 2], [0, 2]]
    mean = mean_curve(curves)
    assert mean[1].given == pytest.approx((curves[0][1].given + curves[1][1].given) / 2)
    assert mean_curve([[Shot(k=1, seen=40, given=10, rest=0)], [Shot(k=1, seen=60, given=20, rest=50)]]) == (
        Shot(k=1, seen=50, given=15, rest=25),
    )


def test_the_shots_are_those_the_data_allows() -> None:
    assert (shots_for(DATA), shots_for(DATA, (4, 0))) == ((0, 1, 2, 3), (0, 4))
    assert shots_for(load("synthetic:classes=4,unseen=2,attributes=2,features=2,rows=1,test=40")) == SHOTS
    with pytest.raises(UsageError, match=r"^--shots 5: an unseen class of synthetic.* choose at most 4$"):
        shots_for(DATA, (0, 5))
    with pytest.raises(UsageError, match="SMALL has 1 classes that only have test rows; few-shot needs at least 2"):
        shots_for(small(4, 1))


# ---- the study


def ran(path: Path, *learners: str, draws: int = 2, progress: Any = lambda _: None) -> StudyDocument:
    return run_few_shot(DATA, Settings(), RunFolder(path), "the command", learners, draws, (0, 1, 3), progress)


def test_a_study_has_one_curve_per_learner(tmp_path: Path) -> None:
    found = ran(tmp_path, "closed-form", "ridge")
    folder = RunFolder(tmp_path)
    assert [(curve.learner, [shot.k for shot in curve.shots]) for curve in found.curves] == [
        ("closed-form", [0, 1, 3]),
        ("ridge", [0, 1, 3]),
    ]
    expected = few_shot(create("ridge", DATA.space()), DATA, [draw(DATA, seed) for seed in (0, 1)], (0, 1, 3))
    assert found.curves[1].shots == mean_curve(list(expected))
    assert (found.setting, found.draws, found.rows) == ("few-shot", 2, ())
    assert "without a stream" in found.question
    assert folder.run_or_study() == found == StudyDocument.model_validate(json.loads(folder.study_json.read_text()))
    assert folder.report_html.read_text() == render(found)
    assert not folder.database.exists()
    table = study_table(found)
    assert [str(column.header) for column in table.columns] == ["learner", "classes", "k=0", "k=1", "k=3"]
    assert table.row_count == 6


def test_an_interrupted_study_resumes_and_learners_can_be_added(tmp_path: Path) -> None:
    def interrupt(text: str) -> None:
        if text == "closed-form: 1 of 2 draws":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, "ridge", "closed-form", progress=interrupt)
    assert not RunFolder(tmp_path).study_json.exists()
    said: list[str] = []
    found = ran(tmp_path, "ridge", "closed-form", progress=said.append)
    assert said == ["closed-form: learning the seen classes", *(f"closed-form: {n} of 2 draws" for n in (1, 2))]
    said.clear()
    assert ran(tmp_path, "ridge", "closed-form", progress=said.append) == found
    assert said == []


def test_another_study_in_the_folder_is_refused(tmp_path: Path) -> None:
    ran(tmp_path, "ridge", draws=1)
    with pytest.raises(UsageError, match="has another run: its draws is 1, and the request says 2"):
        ran(tmp_path, "ridge", draws=2)
    (tmp_path / "few-shot-ridge.json").write_text("{")
    with pytest.raises(UsageError, match=r"few-shot-ridge\.json: not a few-shot curve; delete it"):
        ran(tmp_path, "ridge", draws=1)


def test_what_cannot_be_run_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no learner 'oracle'"):
        ran(tmp_path / "study", "ridge", "oracle")
    assert not (tmp_path / "study").exists()
