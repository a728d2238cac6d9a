"""Vectors in models: what is accepted, how it is converted, and that every number is checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from stream_cgzsl.schemas import Sample
from stream_cgzsl.schemas.vector import all_finite


def kept(vector: Any) -> Any:
    return Sample(request_id="r", vector=vector).vector


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.array([1.5, -2], "<f4"), "<f4"),
        (np.array([1.5, -2], "<f2"), "<f2"),
        (np.array([1.5, -2], ">f4"), "<f4"),
        (np.array([1.5, -2], ">f2"), "<f4"),
        (np.array([1.5, -2], np.float64), "<f4"),
        (np.array([1, -2], np.int64), "<f4"),
        (np.array([1, 2], np.uint8), "<f4"),
        (np.array([0, 1.5, 9, -2], "<f4")[1::2], "<f4"),
        ([1.5, -2], "<f4"),
    ],
)
def test_numbers_become_little_endian_floats(given: Any, dtype: str) -> None:
    vector = kept(given)
    assert (vector.dtype.str, vector.tolist()) == (dtype, list(given))


def test_an_array_that_fits_is_not_copied() -> None:
    given = np.ones(3, "<f4")
    assert np.shares_memory(kept(given), given)


def test_a_vector_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        kept(np.ones(3, "<f4"))[0] = 2


def test_the_array_it_came_from_still_can() -> None:
    given = np.ones(3, "<f4")
    kept(given)
    assert given.flags.writeable


@pytest.mark.parametrize(
    "given",
    [
        np.ones((1, 2), "<f4"),
        np.float32(1),
        np.array(1.0),
        np.ones(0, "<f4"),
        np.array([True]),
        np.array(["1"]),
        np.array([1j]),
        np.array([None]),
        np.array([1e39]),
        np.array([np.nan], "<f4"),
        [],
        [True],
        ["1"],
        [[1.0]],
        [float("inf")],
        [10**400],
        (1.0, 2.0),
        "1",
        None,
    ],
    ids=repr,
)
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        kept(given)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["<f4", "<f2"])
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_one_odd_number_is_found_at_any_position(dtype: str, odd: float) -> None:
    largest = np.full(67, np.finfo(dtype).max, dtype)  # numbers whose sum or square would overflow are fine
    spoilt = [largest.copy() for _ in largest]
    for place, array in enumerate(spoilt):
        array[place] = odd
    assert [all_finite(array) for array in (largest, *spoilt)] == [True] + [False] * 67
