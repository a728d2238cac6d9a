"""A generation scores as its definition says, cannot be changed, and its digest covers every part of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_cgzsl.serving.generation import Generation

Array = npt.NDArray[Any]


def make(classes: int = 6, features: int = 5, **changes: Any) -> Generation:
    rng = np.random.default_rng(0)
    fields: dict[str, Any] = {
        "number": 3,
        "class_ids": tuple(f"c{i:03}" for i in range(classes)),
        "seen": np.arange(classes) % 2 == 0,
        "vectors": rng.normal(size=(classes, features)).astype(np.float32),
        "biases": rng.normal(size=classes).astype(np.float32),
        "centre": rng.normal(size=features).astype(np.float32) / 10,
        "metric": "affine",
        "transform": "none",
        "servable": True,
        "calibration": {"offset": 0.5, "how": "evidence"},
    }
    return Generation(**{**fields, **changes})


def as_defined(generation: Generation, rows: Array) -> Array:
    """The scores by the definition in `Generation`, in float64 and one row at a time."""
    scores = []
    for row in rows.astype(np.float64):
        t = np.sqrt(row) if generation.transform == "sqrt" else row
        v = t / np.linalg.norm(t) - generation.centre
        weights = generation.vectors.astype(np.float64)
        if generation.metric == "cosine":
            weights = weights / np.linalg.norm(weights, axis=1, keepdims=True)
        scores.append(weights @ (v / np.linalg.norm(v)) + generation.biases)
    return np.stack(scores)


@pytest.mark.parametrize("metric", ["affine", "cosine"])
@pytest.mark.parametrize("transform", ["none", "sqrt"])
def test_scores_are_those_of_the_definition(metric: str, transform: str) -> None:
    generation = make(metric=metric, transform=transform)
    rows = np.random.default_rng(1).random((7, 5)).astype(np.float32)
    np.testing.assert_allclose(generation.scores(rows), as_defined(generation, rows), rtol=1e-4, atol=1e-5)


def test_scoring_does_not_change_the_sample() -> None:
    rows = np.random.default_rng(1).random((4, 5)).astype(np.float32)
    before = rows.copy()
    make(transform="sqrt").classify(rows, 2)
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("row", [np.zeros(5), np.full(5, 3e38), np.full(5, 1e-45)], ids=["zero", "huge", "tiny"])
def test_extreme_samples_have_finite_scores(row: Array) -> None:
    assert np.isfinite(make(transform="sqrt").scores(row[None])).all()


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("transform", ["none", "sqrt"])
def test_a_sample_too_large_to_be_squared_has_the_scores_of_a_smaller_one(transform: str, centred: bool) -> None:
    changes = {} if centred else {"centre": np.zeros(5, np.float32)}
    generation = make(transform=transform, **changes)
    rows = np.array([[3, 1, 2, 1, 3], [1, 1, 2, 1, 1]], np.float32)
    huge = rows * np.array([[1e38], [1]], np.float32)  # 3e38 squared is not a float32
    np.testing.assert_allclose(generation.scores(huge), generation.scores(rows), rtol=1e-4, atol=1e-5)


@given(st.integers(1, 40), st.integers(1, 45), st.lists(st.integers(0, 3), min_size=40, max_size=40))
def test_the_best_classes_are_in_order_and_ties_go_to_the_first(classes: int, k: int, levels: list[int]) -> None:
    """Biases alone decide here, in few levels, so that most scores are tied."""
    biases = np.array(levels[:classes], np.float32)
    generation = make(classes, vectors=np.zeros((classes, 5), np.float32), biases=biases)
    ranking = generation.classify(np.ones((2, 5)), k)
    expected = sorted(range(classes), key=lambda c: (-biases[c], c))[:k]
    assert ranking.indices.tolist() == [expected, expected]
    assert ranking.scores.tolist() == [biases[expected].tolist()] * 2


def test_without_classes_there_are_no_candidates() -> None:
    nothing = make(0)
    assert nothing.classify(np.ones((3, 5)), 5).indices.shape == (3, 0)
    assert len(nothing.digest) == 64


def test_equal_parts_give_equal_digests() -> None:
    assert make().digest == make().digest


@pytest.mark.parametrize(
    "change",
    [
        {"number": 4},
        {"class_ids": ("c000", "c001", "c002", "c003", "c004", "d")},
        {"seen": np.array([True] * 6)},
        {"vectors": np.nextafter(make().vectors, np.float32(np.inf))},
        {"biases": make().biases * np.array([1, 1, 1, 1, 1, 1.0000001], np.float32)},
        {"centre": -make().centre},
        {"metric": "cosine"},
        {"transform": "sqrt"},
        {"servable": False},
        {"calibration": {"offset": 0.5000001, "how": "evidence"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_digest_covers_every_part(change: dict[str, Any]) -> None:
    assert replace(make(), **change).digest != make().digest


def test_the_digest_does_not_depend_on_the_numbers_of_examples() -> None:
    """Answers do not, and generations published before these numbers were recorded keep their digest."""
    assert make(examples=np.arange(6)).digest == make().digest


@pytest.mark.parametrize("name", ["vectors", "biases", "centre", "examples"])
def test_arrays_cannot_be_written_to(name: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(make(examples=np.arange(6)), name)[0] = 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class_ids": ("b", "a", "c", "d", "e", "f")}, "sorted and distinct"),
        ({"class_ids": ("a", "a", "c", "d", "e", "f")}, "sorted and distinct"),
        ({"class_ids": ("a", "b")}, "do not fit together"),
        ({"biases": np.zeros(5, np.float32)}, "do not fit together"),
        ({"centre": np.zeros(4, np.float32)}, "do not fit together"),
        ({"examples": np.zeros(5, np.int64)}, "one number of examples per class"),
        ({"metric": "manhattan"}, "manhattan"),
        ({"transform": "log"}, "log"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**change)
