"""The pictures of features in a report: their nearest projections, and the map of real and replayed ones."""

from __future__ import annotations

import numpy as np
import pytest

from stream_cgzsl.benchmark.runs.feature_map import feature_map
from stream_cgzsl.benchmark.runs.similarities import Similarities
from stream_cgzsl.report.document import Neighbours, Similar, SimilarityPanel
from stream_cgzsl.serving.generation import Generation


def generation(number: int, seen: dict[str, bool], centre: float = 0.0, servable: bool = True) -> Generation:
    """The projection of class `a` is the first axis, of `b` the second and so on, at length 2."""
    vectors = 2 * np.eye(4, dtype=np.float32)[[ord(c) - ord("a") for c in seen]]
    return Generation(
        number=number,
        class_ids=tuple(seen),
        seen=np.array(list(seen.values())),
        vectors=vectors,
        biases=np.zeros(len(seen), np.float32),
        centre=np.full(4, centre, np.float32),
        servable=servable,
    )


def test_neighbours_are_the_projections_of_highest_cosine() -> None:
    tests = {"c": np.array([[0, 3, 4, 0], [0, 30, 40, 0]])}  # at length 1, both are (0, 0.6, 0.8, 0)
    followed = Similarities(tests)
    followed.add(generation(1, {"a": True, "b": True}))
    followed.add(generation(2, {"a": True, "b": True, "c": False, "d": False}))
    followed.add(generation(3, {"a": True, "b": True, "c": True, "d": False}))
    expected = [
        Similar(class_id="c", similarity=0.8, seen=False),
        Similar(class_id="b", similarity=0.6, seen=True),
        Similar(class_id="a", similarity=0.0, seen=True),
    ]
    learned = expected[0].model_copy(update={"seen": True})
    assert followed.panels() == (
        SimilarityPanel(
            class_id="c",
            learned_in=3,
            windows=(Neighbours(window=2, top=tuple(expected)), Neighbours(window=3, top=(learned, *expected[1:]))),
        ),
    )


def test_features_are_compared_less_the_centre() -> None:
    followed = Similarities({"b": np.array([[0.0, 1.0, 0.0, 0.0]])})
    followed.add(generation(1, {"a": True, "b": False}, centre=0.5))
    (panel,) = followed.panels()
    assert [(found.class_id, found.similarity) for found in panel.windows[0].top] == [("b", 0.5), ("a", -0.5)]


def test_a_generation_that_is_not_servable_is_skipped() -> None:
    followed = Similarities({"b": np.ones((1, 4))})
    followed.add(generation(1, {"a": False, "b": False}, servable=False))
    assert followed.panels() == ()


def test_the_map_keeps_distances_in_the_plane_where_real_features_differ() -> None:
    random = np.random.default_rng(1)
    plane = np.linalg.qr(random.normal(size=(7, 2)))[0].T  # two directions in seven dimensions
    flat = random.normal(size=(3, 6, 2)) * [5, 1]
    real = [points @ plane for points in flat]
    made = feature_map(("a", "b", "c"), real, np.stack([points[:2] for points in real]))
    found = np.array([[point.x, point.y] for point in made.points])
    assert made.class_ids == ("a", "b", "c")
    assert [(point.class_index, point.replayed) for point in made.points] == [
        *((index, False) for index in (0, 1, 2) for _ in range(6)),
        *((index, True) for index in (0, 1, 2) for _ in range(2)),
    ]
    whole = np.concatenate([*flat, *(points[:2] for points in flat)])
    np.testing.assert_allclose(
        np.linalg.norm(found[:, None] - found, axis=2), np.linalg.norm(whole[:, None] - whole, axis=2), atol=1e-5
    )


@pytest.mark.parametrize("features", [1, 2])
def test_a_map_of_few_features_is_a_map(features: int) -> None:
    rows = np.arange(4.0 * features).reshape(4, features)
    made = feature_map(("a",), [rows], rows[None, :1])
    assert [point.replayed for point in made.points] == [False] * 4 + [True]
