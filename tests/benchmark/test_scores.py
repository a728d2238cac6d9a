"""The paper's measures, compared with cases calculated by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_data import data as small

from stream_cgzsl.benchmark.datasets import data_folder, load
from stream_cgzsl.benchmark.protocols import Plan, plan_for
from stream_cgzsl.benchmark.runs.metrics_document import metrics_document
from stream_cgzsl.benchmark.scores import Accuracy, Readings, Scores, Scoring, accuracy, recalculated, run
from stream_cgzsl.learners import create
from stream_cgzsl.serving.encoder import Layer
from stream_cgzsl.serving.generation import Generation


def generation(class_ids: str, seen: str, **directions: int) -> Generation:
    """The projection of class `a` is the first direction, of `b` the second and so on, unless another is given."""
    places = [directions.get(c, "abcd".index(c)) for c in class_ids]
    flags = np.array([c in seen for c in class_ids])
    return Generation(1, tuple(class_ids), flags, np.eye(4)[places], np.zeros(len(class_ids)), np.zeros(4))


def rows(*directions: int) -> np.ndarray:
    return np.eye(4, dtype=np.float32)[list(directions)]


TESTS = {"a": rows(0, 0, 0, 1), "b": rows(1), "c": rows(2, 3), "d": rows(0, 0)}


# ---- one label space


def test_every_class_counts_the_same_whatever_its_rows() -> None:
    found = accuracy(generation("abcd", "ab"), generation("abcd", "ab"), TESTS)
    assert found == Accuracy(seen=87.5, unseen=25.0)
    assert found.harmonic == pytest.approx(2 * 87.5 * 25 / 112.5)


def test_a_class_without_test_rows_does_not_count() -> None:
    tests = {**TESTS, "a": rows()}
    assert accuracy(generation("abcd", "ab"), generation("abcd", "ab"), tests) == Accuracy(seen=100.0, unseen=25.0)


def test_an_earlier_window_is_judged_in_its_own_label_space() -> None:
    early, late, final = generation("ac", "a"), generation("abcd", "ab"), generation("abcd", "abc")
    # without b and d, the rows in their directions are ties, which the first class wins
    assert recalculated(final, [early, late], TESTS) == (
        Accuracy(seen=100.0, unseen=50.0),
        Accuracy(seen=87.5, unseen=25.0),
    )


def test_a_generation_with_an_encoder_is_judged_like_any_other() -> None:
    plain = generation("abcd", "ab")
    encoder = (Layer(np.eye(4), np.zeros(4)),)
    scoring, expected = Scoring(TESTS), Scoring(TESTS)
    assert scoring.add(replace(plain, metric="linear", encoder=encoder)) == expected.add(plain)
    assert scoring.readings() == expected.readings()


def test_a_class_that_is_gone_since_does_not_count() -> None:
    assert accuracy(generation("acd", "a"), generation("abc", "ab"), TESTS) == Accuracy(seen=100.0, unseen=50.0)


def test_a_class_that_was_unseen_then_counts_as_unseen_though_it_is_learned_since() -> None:
    early, final = generation("bc", "b"), generation("bc", "bc")
    assert accuracy(final, early, TESTS) == Accuracy(seen=100.0, unseen=50.0)


def test_without_unseen_classes_there_is_no_unseen_accuracy() -> None:
    found = accuracy(generation("ab", "ab"), generation("ab", "ab"), TESTS)
    assert (found, found.harmonic) == (Accuracy(seen=87.5, unseen=None), None)


def test_nothing_right_at_all_is_a_harmonic_mean_of_zero() -> None:
    assert Accuracy(0.0, 0.0).harmonic == 0.0


# ---- means over windows


def test_mh_is_the_mean_of_harmonic_means() -> None:
    scores = Scores((Accuracy(50, 50), Accuracy(100, 0)))
    assert (scores.mSA, scores.mUA, scores.mH) == (75.0, 25.0, 25.0)
    assert str(scores) == "75.0 / 25.0 / 25.0"


def test_a_window_without_unseen_classes_is_left_out_of_mua_and_mh() -> None:
    """In the static setting, the last of T tasks: T - 1 remain."""
    scores = Scores((Accuracy(60, 20), Accuracy(80, 80), Accuracy(100, None)))
    assert (scores.mSA, scores.mUA, scores.mH) == (80.0, 50.0, (30 + 80) / 2)


def test_a_mean_of_nothing_is_none() -> None:
    scores = Scores((Accuracy(60, None),))
    assert (scores.mSA, scores.mUA, scores.mH, str(scores)) == (60.0, None, None, "60.0 / - / -")


# ---- a run, generation by generation


def test_the_readings_of_two_windows() -> None:
    """b takes a's direction in the second generation, which forgets a; in the label space of a and c, a wins all ties.

    Areas: as the offset of unseen classes grows, (seen, unseen) goes from (1, 0) over (1, .5) and (.75, 1) to (0, 1) in
    the first window, and from (.25, 0) straight to (0, 1) in the second.
    """
    scoring = Scoring(TESTS)
    first = scoring.add(generation("ac", "a"))
    second = scoring.add(generation("abcd", "abc", a=1, b=0))
    assert (first, second) == (Accuracy(100.0, 50.0), Accuracy((25 + 0 + 50) / 3, 0.0))
    assert scoring.readings() == Readings(
        as_of=Scores((first, second)),
        recalculated=Scores((Accuracy(100.0, 50.0), second)),
        forgetting=(None, 75.0),
        areas=(93.75, 12.5),
        overall=(75.0, (25 + 0 + 50 + 0) / 4),
        by_examples=({}, {}),  # these generations do not say how many examples their classes have had
        task_forgetting=75.0,
    )


def test_the_last_forgetting_and_the_mean_area_are_the_runs() -> None:
    none = Scores(())
    found = Readings(none, none, forgetting=(None, 5.0, 3.0), areas=(40.0, 60.0, None))
    assert (found.final_forgetting, found.mAUSUC) == (3.0, 50.0)


def test_before_the_first_generation_there_are_no_readings() -> None:
    with pytest.raises(ValueError, match="no generation was added yet"):
        Scoring(TESTS).readings()


# ---- metrics.json


def test_the_document_has_both_readings() -> None:
    as_of, again = Scores((Accuracy(60, 20), Accuracy(80, None))), Scores((Accuracy(50, 50), Accuracy(70, None)))
    document = metrics_document(
        method="episodic",
        setting="static",
        dataset="CUB",
        readings=Readings(as_of, again, (None, 2.5), (41.0, None), task_forgetting=-1.5),
        seconds_training=3.5,
        seconds_total=9.0,
    )
    assert json.loads(json.dumps(document, allow_nan=False)) == {
        "method": "episodic",
        "setting": "static",
        "dataset": "CUB",
        "generations": 2,
        "as_of": {"mSA": 70, "mUA": 20, "mH": 30, "SA": [60, 80], "UA": [20, None], "H": [30, None]},
        "recalculated": {"mSA": 60, "mUA": 50, "mH": 50, "SA": [50, 70], "UA": [50, None], "H": [50, None]},
        "forgetting": 2.5,
        "task_forgetting": -1.5,
        "mAUSUC": 41.0,
        "windows": {"forgetting": [None, 2.5], "AUSUC": [41.0, None]},
        "seconds_training": 3.5,
        "seconds_total": 9.0,
    }


# ---- a learner on data


@pytest.mark.parametrize(
    ("plan", "counted"),
    [
        (Plan("static", 3, 4), [(3, 2), (3, 2)]),
        (Plan("dynamic", 3, 3, 1), [(3, 3), (3, 3)]),
        (Plan("online", 3, 3, 1, 1), [(3, 3), (3, 3)]),
    ],
    ids=str,
)
def test_how_many_windows_each_mean_is_over(plan: Plan, counted: list[Any]) -> None:
    data = load("synthetic:classes=13,unseen=4,features=12,attributes=6,rows=6,test=5")
    found = run(create("ridge", data.space()), data, plan)
    assert [
        (sum(w.seen is not None for w in scores.windows), sum(w.unseen is not None for w in scores.windows))
        for scores in (found.as_of, found.recalculated)
    ] == counted
    assert len(found.generations) == 3


def test_no_test_row_is_trained_on() -> None:
    """A learner that records its rows sees the training rows, and only those."""
    data = small(4, 2)
    trained: list[float] = []

    class Spy:
        def fit(self, window: Any) -> Generation:
            trained.extend(row[0] for examples in window.features.values() for row in examples.rows)
            ids = data.class_ids
            return Generation(1, ids, np.ones(len(ids), bool), np.ones((len(ids), 2)), np.zeros(len(ids)), np.zeros(2))

    plan = Plan("static", 3, 2)
    run(Spy(), data, plan)  # type: ignore[arg-type]
    used = data.under("static")
    assert set(trained) & set(used.features[used.test_seen][:, 0]) == set()
    assert len(trained) == len(used.train)


@pytest.mark.skipif(
    not (data_folder() / "BANKING77" / "minilm.mat").is_file(),
    reason="BANKING77 is not in CGZSL_DATA or ../shared/data",
)
@pytest.mark.slow
def test_episodic_on_real_data() -> None:
    data = load("BANKING77")
    found = run(create("episodic", data.space()), data, plan_for(data, "online"))
    assert [int(g.seen.sum()) for g in found.generations] == [9, 19, 29, 39, 49, 59]
    assert all(g.calibration["shared"] for g in found.generations)
    assert found.as_of.mH is not None and found.as_of.mH > 87
