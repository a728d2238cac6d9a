"""Generations made by deltas are what they would be if they had been made whole, and share what did not change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_cgzsl.serving import blocks
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.generation import Generation, following

FEATURES = 3


def generation(number: int, rows: dict[str, int], metric: str = "affine") -> Generation:
    """Each class has a vector, a bias and a count that follow from one number."""
    ids = tuple(sorted(rows))
    return Generation(
        number,
        ids,
        np.array([rows[c] % 2 == 0 for c in ids], bool),
        np.array([vector(rows[c]) for c in ids], np.float32).reshape(len(ids), FEATURES),
        np.array([rows[c] / 7 for c in ids], np.float32),
        np.full(FEATURES, 0.1, np.float32),
        metric,
        examples=np.array([rows[c] for c in ids], np.int64),
        incremental=True,
    )


def vector(value: int) -> list[float]:
    return [value, 1.0, -value / 3]


def delta(number: int, rows: dict[str, int], withdrawn: tuple[str, ...] = ()) -> Delta:
    whole = generation(number, rows)
    assert whole.examples is not None
    return Delta(
        number, whole.class_ids, whole.seen, whole.vectors, whole.biases, whole.examples, tuple(sorted(withdrawn))
    )


def assert_same(made: Generation, whole: Generation) -> None:
    assert (made.number, made.class_ids, made.digest) == (whole.number, whole.class_ids, whole.digest)
    for name in ("seen", "vectors", "biases", "centre", "examples"):
        np.testing.assert_array_equal(getattr(made, name), getattr(whole, name))
    rows = np.random.default_rng(0).normal(size=(5, FEATURES)).astype(np.float32)
    np.testing.assert_allclose(made.scores(rows), whole.scores(rows), rtol=1e-5, atol=1e-5)


names = st.sampled_from([f"c{i}" for i in range(40)])
steps = st.lists(st.tuples(st.dictionaries(names, st.integers(0, 9)), st.frozensets(names)), max_size=6)


@given(first=st.dictionaries(names, st.integers(0, 9)), changes=steps)
@settings(max_examples=60, deadline=None)
def test_deltas_lead_where_whole_generations_do(
    first: dict[str, int], changes: list[tuple[dict[str, int], frozenset[str]]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_ROWS", 4)
        made, rows = generation(1, first), dict(first)
        _ = made.digest  # row digests are kept from one to the next
        for number, (changed, gone) in enumerate(changes, start=2):
            withdrawn = tuple(sorted(gone - set(changed)))
            made = made.after(delta(number, changed, withdrawn))
            rows = {c: v for c, v in (rows | changed).items() if c not in withdrawn}
            assert_same(made, generation(number, rows))


@pytest.mark.parametrize("metric", ["affine", "cosine"])
@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_the_best_classes_of_many_blocks_are_those_of_one(metric: str, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {f"c{i:02}": i % 11 for i in range(37)}  # several classes are alike: equal scores go to the first
    one = generation(1, rows, metric)
    _ = one.blocks
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 4)
    many = generation(1, rows, metric)
    assert (len(one.blocks), len(many.blocks)) == (1, 10)
    samples = np.random.default_rng(3).normal(size=(300, FEATURES)).astype(np.float32)
    for left, right in zip(one.classify(samples, k), many.classify(samples, k), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_delta_shares_the_blocks_it_does_not_touch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 4)
    before = generation(1, {f"c{i:02}": i for i in range(20)})
    after = before.after(delta(2, {"c05": 3}))
    shared = [old is new for old, new in zip(before.blocks, after.blocks, strict=True)]
    assert shared == [True, False, True, True, True]
    assert (after.base, after.delta is not None and after.delta.class_ids) == (1, ("c05",))


def test_rows_are_found_by_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 4)
    found = generation(1, {f"c{i:02}": i for i in range(20)}).rows_of(["c00", "c11", "a", "z", "c115"])
    assert {c: row.tolist() for c, row in found.items()} == {
        "c00": pytest.approx(vector(0)),
        "c11": pytest.approx(vector(11)),
    }


def test_only_incremental_generations_take_deltas() -> None:
    before = generation(3, {"a": 1})
    with pytest.raises(ValueError, match="generation 4 cannot be made from generation 3"):
        replace(before, incremental=False).after(delta(4, {"b": 1}))
    with pytest.raises(ValueError, match="generation 3 cannot be made from generation 3"):
        before.after(delta(3, {"b": 1}))


def test_a_learner_answers_with_a_generation_or_with_a_delta() -> None:
    first = generation(1, {"a": 1})
    assert following(None, first) is first
    assert following(first, delta(2, {"b": 2})).class_ids == ("a", "b")


@pytest.mark.parametrize(
    "change", [{"a": 3, "b": 2}, {"a": 1, "c": 2}, {"a": 1}], ids=["a row", "a name", "a class less"]
)
def test_the_digest_covers_every_row(change: dict[str, int]) -> None:
    assert generation(1, change).digest != generation(1, {"a": 1, "b": 2}).digest


@pytest.mark.parametrize("change", ["number", "centre", "metric", "transform", "calibration", "servable"])
def test_the_digest_covers_what_rows_have_in_common(change: str) -> None:
    made = generation(1, {"a": 1})
    others = {
        "number": 2,
        "centre": -made.centre,
        "metric": "cosine",
        "transform": "sqrt",
        "calibration": {"offset": 1},
        "servable": False,
    }
    assert replace(made, **{change: others[change]}).digest != made.digest
