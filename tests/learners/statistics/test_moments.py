from __future__ import annotations

import numpy as np
import pytest
from worlds import Array, arrays_equal

from stream_cgzsl.errors import TrainingFailed
from stream_cgzsl.learners.statistics import moments as module
from stream_cgzsl.learners.statistics.moments import Moments
from stream_cgzsl.windows.window import Examples

FEATURES = 7


def examples(random: np.random.Generator, sizes: dict[str, int]) -> dict[str, Examples]:
    return {c: Examples(n, random.random((n, FEATURES)).astype(np.float32)) for c, n in sizes.items()}


def of(given: dict[str, Examples], transform: str = "sqrt") -> Moments:
    return Moments.of(given, FEATURES, transform)


def arrays(moments: Moments) -> dict[str, Array]:
    return {**moments.means, "scatter": moments.scatter}


def obvious(rows: dict[str, Array]) -> tuple[dict[str, Array], Array]:
    """Means and scatter, row by row."""
    means: dict[str, Array] = {}
    scatter = np.zeros((FEATURES, FEATURES))
    for class_id, raw in rows.items():
        root = np.sqrt(raw.astype(np.float64))
        x = root / np.linalg.norm(root, axis=1, keepdims=True)
        means[class_id] = x.mean(axis=0)
        for row in x:
            scatter += np.outer(row - means[class_id], row - means[class_id])
    return means, scatter


@pytest.mark.parametrize("rows_at_once", [3, 5, 4096])
def test_moments_are_those_of_the_rows(rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_ROWS", rows_at_once)
    monkeypatch.setattr(module, "BLOCK_COLUMNS", 3)
    given = examples(np.random.default_rng(0), {"a": 11, "b": 1, "c": 4})
    found = of(given)
    means, scatter = obvious({c: e.rows for c, e in given.items()})
    assert (found.counts, found.rows, found.freedom) == ({"a": 11, "b": 1, "c": 4}, 16, 13)
    for class_id, mean in means.items():
        np.testing.assert_allclose(found.means[class_id], mean, rtol=1e-6)
    np.testing.assert_allclose(found.scatter, scatter, atol=1e-6)
    assert (found.scatter == found.scatter.T).all()


def test_parts_merge_to_the_whole() -> None:
    whole = examples(np.random.default_rng(1), {"a": 9, "b": 6, "c": 5})
    one = {"a": Examples(4, whole["a"].rows[:4]), "b": whole["b"]}
    two = {"a": Examples(5, whole["a"].rows[4:]), "c": whole["c"]}
    merged, expected = of(one).merge(of(two)), of(whole)
    assert (merged.counts, merged.rows, merged.freedom) == (expected.counts, expected.rows, expected.freedom)
    for name, array in arrays(expected).items():
        np.testing.assert_allclose(arrays(merged)[name], array, atol=1e-12)


def test_merging_is_the_same_from_either_side() -> None:
    random = np.random.default_rng(2)
    one, two = of(examples(random, {"a": 4, "b": 3})), of(examples(random, {"a": 6, "c": 2}))
    assert arrays_equal(arrays(one.merge(two)), arrays(two.merge(one)))


def test_merging_with_nothing_is_exact() -> None:
    some = of(examples(np.random.default_rng(3), {"a": 4}))
    assert some.merge(Moments.none(FEATURES)) is some
    assert Moments.none(FEATURES).merge(some) is some


def test_the_order_of_classes_in_the_mapping_does_not_matter() -> None:
    given = examples(np.random.default_rng(4), {"a": 4, "b": 3, "c": 5})
    assert arrays_equal(arrays(of(given)), arrays(of(dict(reversed(given.items())))))


def test_kept_rows_stand_for_all_that_came() -> None:
    kept = examples(np.random.default_rng(5), {"a": 6})
    sampled = of({"a": Examples(600, kept["a"].rows)})
    plain = of(kept)
    assert (sampled.counts, sampled.rows, sampled.freedom) == ({"a": 600}, 600, 599)
    np.testing.assert_allclose(sampled.scatter / sampled.freedom, plain.scatter / plain.freedom, rtol=1e-12)
    assert (sampled.means["a"] == plain.means["a"]).all()


def test_one_kept_row_of_many_tells_no_spread() -> None:
    sampled = of({"a": Examples(50, np.ones((1, FEATURES), np.float32))})
    assert (sampled.rows, sampled.freedom, float(np.abs(sampled.scatter).max())) == (50, 0, 0.0)


def test_a_dropped_class_leaves_its_share_of_the_scatter() -> None:
    both = of(examples(np.random.default_rng(6), {"a": 4, "b": 3}))
    left = both.without("a")
    assert (dict(left.counts), set(left.means), left.rows, left.freedom) == ({"b": 3}, {"b"}, 7, 5)
    assert left.scatter is both.scatter


def test_signed_features_are_only_scaled() -> None:
    rows = np.array([[3.0, -4.0] + [0.0] * 5], np.float32)
    np.testing.assert_allclose(of({"a": Examples(1, rows)}, "none").means["a"][:2], [0.6, -0.8], rtol=1e-7)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_finite_are_named(bad: float) -> None:
    given = examples(np.random.default_rng(7), {"a": 4, "b": 3})
    given["b"].rows[1, 2] = bad
    with pytest.raises(TrainingFailed, match="class 'b'"):
        of(given)
