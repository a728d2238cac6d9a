"""Forgetting over a few evaluations, by hand."""

from __future__ import annotations

import pytest

from stream_cgzsl.evaluation.forgetting import best_since_learned, forgetting, task_forgetting


def test_losses_since_the_best_are_averaged_and_gains_are_no_forgetting() -> None:
    best = {"a": 0.9, "b": 0.5, "c": 0.4}
    now = {"a": 0.6, "b": 0.8, "c": 0.4, "d": 0.1}
    assert forgetting(best, {"a", "b", "c", "d"}, now) == pytest.approx(0.1)


def test_a_class_counts_from_its_second_evaluation_on() -> None:
    assert forgetting({}, {"a"}, {"a": 0.5}) is None
    assert forgetting({"a": 0.5}, {"a", "b"}, {"a": 0.25, "b": 0.1}) == 0.25


def test_a_class_without_rows_does_not_count_now_but_keeps_its_best() -> None:
    assert forgetting({"a": 0.5, "b": 1.0}, {"a", "b"}, {"b": 0.5}) == 0.5
    assert best_since_learned({"a": 0.5, "b": 1.0}, {"a", "b"}, {"b": 0.5}) == {"a": 0.5, "b": 1.0}


def test_a_class_that_is_no_longer_seen_starts_from_scratch() -> None:
    assert forgetting({"a": 0.5}, set(), {"a": 0.1}) is None
    assert best_since_learned({"a": 0.5}, set(), {"a": 0.1}) == {}
    assert best_since_learned({}, {"a"}, {"a": 0.1}) == {"a": 0.1}


def test_several_evaluations() -> None:
    """Class a is learned first and forgotten in part; b is described, learned, retired and learned again."""
    story = (
        ({"a"}, {"a": 0.8, "b": 0.3}, None, {"a": 0.8}),
        ({"a", "b"}, {"a": 0.6, "b": 0.9}, 0.2, {"a": 0.8, "b": 0.9}),
        ({"a", "b"}, {"a": 1.0, "b": 0.7}, 0.1, {"a": 1.0, "b": 0.9}),
        ({"a"}, {"a": 0.9}, 0.1, {"a": 1.0}),
        ({"a", "b"}, {"a": 0.9, "b": 0.2}, 0.1, {"a": 1.0, "b": 0.2}),
    )
    best: dict[str, float] = {}
    for learned, now, expected, expected_best in story:
        lost = forgetting(best, learned, now)
        assert lost is None if expected is None else lost == pytest.approx(expected)
        best = best_since_learned(best, learned, now)
        assert best == expected_best


def test_forgetting_by_task_compares_means_of_a_tasks_classes_and_may_be_negative() -> None:
    seen = [{"a", "b"}, {"a", "b", "c"}, {"a", "b", "c", "d"}]
    found = [
        {"a": 0.8, "b": 0.6, "c": 0.1},  # task 1 at 0.7
        {"a": 0.4, "b": 0.8, "c": 0.5},  # at 0.6; task 2 at 0.5
        {"a": 0.5, "b": 0.6, "c": 0.9, "d": 1.0},  # at 0.55 and at 0.9
    ]
    assert task_forgetting(seen, found) == pytest.approx((0.15 - 0.4) / 2)
    assert task_forgetting(seen[:2], found[:2]) == pytest.approx(0.1)


def test_forgetting_by_task_leaves_out_what_cannot_be_compared() -> None:
    assert task_forgetting([{"a"}], [{"a": 0.5}]) is None
    assert task_forgetting([], []) is None
    assert task_forgetting([{"a"}, {"a", "b"}], [{}, {"b": 0.5}]) is None  # no rows of a, and b is new
    assert task_forgetting([set(), {"a"}, {"a"}], [{"a": 0.1}, {"a": 0.5}, {"a": 0.4}]) == pytest.approx(0.1)
