"""Projection drift: known angles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from generations import degrees, generation

from stream_cgzsl.evaluation.projection_drift import angles, projection_drift

EAST, NORTH, NORTH_EAST, WEST = degrees(0, 90, 45, 180)


def test_angles_do_not_depend_on_lengths() -> None:
    a = np.array([[1, 0], [3, 0], [0.001, 0], [0, 5]], np.float32)
    b = np.array([[2, 0], [0, 1], [-7, 0], [1, 1]], np.float32)
    np.testing.assert_allclose(angles(a, b), [0, math.pi / 2, math.pi, math.pi / 4], atol=1e-7)


def test_tiny_angles_are_exact() -> None:
    assert angles(np.array([[1.0, 0.0]]), np.array([[1.0, 1e-9]])) == pytest.approx([1e-9], rel=1e-12)


def test_batches_give_the_same_angles() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3000, 4))
    whole = angles(a, b)
    assert whole.shape == (3000,)
    np.testing.assert_array_equal(whole[2500:], angles(a[2500:], b[2500:]))


def test_the_drift_of_every_class_that_both_have() -> None:
    before = generation(1, {"a": EAST, "b": NORTH, "c": EAST}, seen="a")
    after = generation(2, {"a": NORTH_EAST, "c": EAST, "d": NORTH}, seen="ac")
    assert projection_drift(before, after) == {"a": pytest.approx(math.pi / 4), "c": 0.0}


@pytest.mark.parametrize(("first", "second"), [(False, True), (True, False), (False, False)])
def test_no_drift_if_a_generation_is_not_servable(first: bool, second: bool) -> None:
    before = generation(1, {"a": EAST}, servable=first)
    assert projection_drift(before, generation(2, {"a": WEST}, servable=second)) == {}


def test_no_drift_without_a_previous_generation() -> None:
    assert projection_drift(None, generation(1, {"a": EAST})) == {}
    assert projection_drift(generation(1, {}), generation(2, {})) == {}
