"""Accuracies per class, and what an offset would change: computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from generations import degrees, generation

from stream_cgzsl.evaluation import answers as module
from stream_cgzsl.evaluation.answers import Accuracies, accuracies, classify, in_batches
from stream_cgzsl.schemas import Array

COMPASS = generation(1, dict(zip("abcd", degrees(0, 90, 180, 270), strict=True)), seen="ac")


def rows(**by_class: tuple[float, ...]) -> dict[str, list[Array]]:
    """Rows of each class at these angles."""
    return {
        class_id: [np.array(point, np.float32) for point in degrees(*angles)] for class_id, angles in by_class.items()
    }


def test_accuracies_are_means_over_classes_not_over_rows() -> None:
    asked = rows(a=(10, 20, 30, 200), b=(80,), c=(10,))  # three of four right, one of one, none of one
    found = accuracies(COMPASS, classify(COMPASS, in_batches(COMPASS.class_ids, asked)))
    assert found == Accuracies({"a": 0.75, "b": 1.0, "c": 0.0}, seen=0.375, unseen=1.0)
    assert found.harmonic == pytest.approx(2 * 0.375 / 1.375)


def test_classes_without_rows_have_no_accuracy() -> None:
    found = accuracies(COMPASS, classify(COMPASS, []))
    assert (found, found.harmonic) == (Accuracies({}, None, None), None)
    only_seen = accuracies(COMPASS, classify(COMPASS, in_batches(COMPASS.class_ids, rows(a=(0,)))))
    assert (only_seen, only_seen.harmonic) == (Accuracies({"a": 1.0}, 1.0, None), None)


def test_the_harmonic_mean_of_zeros_is_zero() -> None:
    assert Accuracies({}, 0.0, 0.0).harmonic == 0.0


def test_answers_have_the_lead_of_seen_classes_and_the_best_of_each_group() -> None:
    answers = classify(COMPASS, in_batches(COMPASS.class_ids, rows(a=(0, 60), b=(60, 300))))
    sine, cosine = np.sin(np.pi / 3), np.cos(np.pi / 3)
    np.testing.assert_array_equal(answers.truth, [0, 0, 1, 1])
    np.testing.assert_array_equal(answers.right, [True, False, True, False])
    np.testing.assert_array_equal(answers.right_in_group, [True, True, True, False])
    np.testing.assert_allclose(answers.lead, [1, cosine - sine, cosine - sine, cosine - sine], atol=1e-6)


def test_a_group_without_classes_is_never_the_answer() -> None:
    only = generation(1, {"a": [1, 0], "b": [0, 1]}, seen="ab")
    answers = classify(only, in_batches(only.class_ids, rows(a=(0,))))
    assert (answers.lead.tolist(), answers.right_in_group.tolist()) == ([np.inf], [True])


def test_rows_come_class_by_class_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH_ROWS", 3)
    given = {"b": [np.full(1, n) for n in range(4)], "a": [np.full(1, 9)], "unknown": [np.full(1, 7)]}
    batches = [(batch.truth.tolist(), batch.rows[:, 0].tolist()) for batch in in_batches(("a", "b", "c"), given)]
    assert batches == [([0, 1, 1], [9, 0, 1]), ([1, 1], [2, 3])]


def test_classifying_can_be_stopped_between_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH_ROWS", 1)
    calls = []

    def alive() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        classify(COMPASS, in_batches(COMPASS.class_ids, rows(a=(0, 0, 0))), alive)
