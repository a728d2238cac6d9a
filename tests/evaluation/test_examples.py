"""Accuracy by how many examples a class has had."""

from __future__ import annotations

import numpy as np
import pytest
from generations import AXES, generation

from stream_cgzsl.evaluation.evaluate import evaluate
from stream_cgzsl.evaluation.examples import accuracy_by_examples, bucket_of
from stream_cgzsl.schemas import EXAMPLE_BUCKETS
from stream_cgzsl.serving.generation import Generation

LETTERS = {letter: [1.0, 0.0] for letter in "abcdef"}


def counted(*examples: int) -> Generation:
    """Classes a, b, c, ... with so many examples each."""
    letters = "abcdef"[: len(examples)]
    return generation(1, {letter: LETTERS[letter] for letter in letters}, examples=np.array(examples))


@pytest.mark.parametrize(
    ("bucket", "numbers"),
    [("0", [0]), ("1-2", [1, 2]), ("3-5", [3, 4, 5]), ("6-20", [6, 13, 20]), (">20", [21, 1000, 2**63 - 1])],
)
def test_every_number_of_examples_has_its_bucket(bucket: str, numbers: list[int]) -> None:
    assert {bucket_of(number) for number in numbers} == {bucket}
    assert bucket in EXAMPLE_BUCKETS


def test_a_bucket_has_the_mean_of_its_classes() -> None:
    found = accuracy_by_examples(counted(30, 0, 2, 1, 0), {"a": 1.0, "b": 0.5, "c": 0.25, "d": 0.75, "e": 0.0})
    assert list(found.items()) == [("0", 0.25), ("1-2", 0.5), (">20", 1.0)]


def test_classes_without_test_rows_do_not_count() -> None:
    assert accuracy_by_examples(counted(0, 0, 4), {"b": 0.5}) == {"0": 0.5}
    assert accuracy_by_examples(counted(0, 0, 4), {}) == {}


def test_without_numbers_of_examples_there_are_no_buckets() -> None:
    assert accuracy_by_examples(generation(1, LETTERS), dict.fromkeys(LETTERS, 0.5)) == {}


def test_an_evaluation_has_them() -> None:
    """a is always recognised, b never, c in one of two rows."""
    made = generation(1, {"a": [1, 0], "b": [-1, 0], "c": [0, 1]}, seen="ac", examples=np.array([1, 0, 2]))
    rows = {"a": [AXES[0]], "b": [AXES[0], AXES[1]], "c": [AXES[0], AXES[1]]}
    assert evaluate(made, None, rows, {}).by_examples == {"0": 0.0, "1-2": 0.75}
    assert evaluate(made, None, {}, {}).by_examples == {}
