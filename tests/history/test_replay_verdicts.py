"""How far two generations are apart, and the exit code of a list of verdicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from served_stream import turned

from stream_cgzsl.history.replay import Verdict, distance, exit_code
from stream_cgzsl.serving.encoder import Layer

INFINITE = (float("inf"), float("inf"))


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([], 0),
        ([Verdict.IDENTICAL, Verdict.EQUIVALENT], 0),
        ([Verdict.IDENTICAL, Verdict.NOT_VERIFIABLE], 12),
        ([Verdict.NOT_VERIFIABLE, Verdict.INPUTS_DIFFER], 11),
        ([Verdict.INPUTS_DIFFER, Verdict.DIFFERENT, Verdict.NOT_VERIFIABLE], 10),
    ],
)
def test_the_exit_code_is_that_of_the_worst_verdict(verdicts: list[Verdict], code: int) -> None:
    assert exit_code(verdicts) == code


def test_the_largest_angle_and_the_largest_change_of_a_bias_count() -> None:
    one = turned(1)
    vectors, biases = one.vectors * 2, one.biases.copy()
    vectors[5] = np.roll(vectors[5], 1)
    biases[3] = 0.5
    assert distance(one, one) == (0.0, 0.0)
    assert distance(one, replace(one, vectors=vectors, biases=biases)) == pytest.approx((np.pi / 2, 0.5))


def test_generations_with_other_classes_are_infinitely_far_apart() -> None:
    one = turned(1)
    assert distance(one, turned(1, classes=15)) == INFINITE
    assert distance(one, replace(one, seen=~one.seen)) == INFINITE
    assert distance(one, turned(1, servable=False)) == INFINITE


def test_generations_that_cannot_answer_are_not_apart() -> None:
    assert distance(turned(1, servable=False), turned(2, servable=False)) == (0.0, 0.0)
    assert distance(turned(1, classes=0), turned(2, classes=0)) == (0.0, 0.0)


def test_how_classes_are_scored_counts_too() -> None:
    one = replace(turned(1), metric="linear", encoder=(Layer(np.eye(16, dtype=np.float32) * 4, np.zeros(16)),))
    assert one.encoder is not None
    moved = replace(one, encoder=(Layer(one.encoder[0].weights + np.float32(0.01), np.zeros(16)),))
    assert distance(one, moved) == pytest.approx((0.0, 0.01 / 4), rel=1e-3)
    assert distance(one, replace(one, centre=np.full(16, 0.25))) == (0.0, 0.25)
    for other in (replace(one, encoder=None), replace(one, transform="sqrt"), turned(1)):
        assert distance(one, other) == INFINITE
