"""What a window keeps: exact counts, and per class the rows with the smallest hashes, whatever the order of arrival."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_cgzsl.windows.bottom_k import KeptFeatures, share

Arrival = tuple[str, bytes]
"""A class and a hash. The row is made from both, so that a misplaced row is noticed."""


def row(arrival: Arrival) -> np.ndarray[Any, Any]:
    class_id, digest = arrival
    return np.array([ord(class_id[0]), digest[0], digest[1], digest[2]], np.float32)


def add(kept: KeptFeatures, arrivals: list[Arrival]) -> None:
    """Adds all in one batch, in which every other row belongs to no feature."""
    rows = np.full((2 * len(arrivals), 4), -1, np.float32)
    for place, arrival in enumerate(arrivals):
        rows[2 * place] = row(arrival)
    kept.add([(*arrival, 2 * place) for place, arrival in enumerate(arrivals)], rows)


def keep(
    arrivals: list[Arrival], budget: int, at_once: int = 1
) -> dict[str, tuple[int, list[bytes], list[list[float]]]]:
    """Per class: the count, the hashes kept, and their rows."""
    kept = KeptFeatures(budget, len(arrivals), 4)
    for first in range(0, len(arrivals), at_once):
        add(kept, arrivals[first : first + at_once])
    examples, hashes = kept.finish()
    assert list(examples) == sorted(examples)
    return {c: (e.count, hashes[c], e.rows.tolist()) for c, e in examples.items()}


def expected(arrivals: list[Arrival], budget: int) -> dict[str, tuple[int, list[bytes], list[list[float]]]]:
    """The same by definition, with everything in memory."""
    hashes: dict[str, list[bytes]] = {}
    for class_id, digest in arrivals:
        hashes.setdefault(class_id, []).append(digest)
    counts = [len(found) for found in hashes.values()]
    k = max([1, *(k for k in range(1, max(counts, default=0) + 1) if sum(min(c, k) for c in counts) <= budget)])
    result = {}
    for class_id in sorted(hashes):
        smallest = sorted(hashes[class_id])[:k]
        result[class_id] = (len(hashes[class_id]), smallest, [row((class_id, d)).tolist() for d in smallest])
    return result


arrival_lists = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d", "e"]), st.binary(min_size=3, max_size=3)), max_size=120
)


@given(arrival_lists, st.integers(0, 130), st.integers(1, 120))
def test_the_sample_is_the_one_of_the_definition(arrivals: list[Arrival], budget: int, at_once: int) -> None:
    assert keep(arrivals, budget, at_once) == expected(arrivals, budget)


@given(arrival_lists, st.integers(1, 60), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(arrivals: list[Arrival], budget: int, random: Any) -> None:
    shuffled = arrivals.copy()
    random.shuffle(shuffled)
    assert keep(shuffled, budget) == keep(arrivals, budget)


def many(classes: int, each: int, seed: int = 0) -> list[Arrival]:
    rng = np.random.default_rng(seed)
    arrivals = [(chr(0x100 + c), rng.bytes(16)) for c in range(classes) for _ in range(each)]
    return [arrivals[i] for i in rng.permutation(len(arrivals))]


@pytest.mark.parametrize(
    ("classes", "each", "budget"),
    [(10, 500, 300), (3, 2000, 64), (300, 4, 40), (200, 1, 10), (40, 1, 39)],
    ids=["even", "few classes", "more classes than budget", "one each", "one class too many"],
)
def test_many_trims_lead_to_the_same_sample(classes: int, each: int, budget: int) -> None:
    arrivals = many(classes, each)
    kept = keep(arrivals, budget, at_once=700)
    assert kept == expected(arrivals, budget)
    assert sum(len(rows) for _, _, rows in kept.values()) <= max(budget, classes)


def test_one_large_class_leaves_room_for_the_small_ones() -> None:
    arrivals = many(1, 5000) + [("a", bytes([n, 0, 0])) for n in range(7)]
    kept = keep(arrivals, 100)
    assert {c: len(hashes) for c, (_, hashes, _) in kept.items()} == {"a": 7, chr(0x100): 93}


def test_memory_is_bounded_by_the_budget_not_by_the_number_of_records() -> None:
    def peak(budget: int) -> int:
        tracemalloc.start()
        kept = KeptFeatures(budget, 10**6, 256)
        for first in range(0, 3000, 100):
            arrivals = [("a", (first + n).to_bytes(3, "little"), n) for n in range(100)]
            kept.add(arrivals, np.ones((100, 256), np.float32))
        kept.finish()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(budget=200) < 500 * 256 * 4  # of 3,000 rows that were added, and a million that were expected


def test_kept_rows_cannot_be_written_to() -> None:
    kept = KeptFeatures(10, 1, 4)
    kept.add([("a", b"123", 0)], np.ones((1, 4), np.float32))
    examples, _ = kept.finish()
    with pytest.raises(ValueError, match="read-only"):
        examples["a"].rows[0] = 0


def test_float16_rows_are_widened_exactly() -> None:
    half = np.array([0.1, 65504, 6e-8, 1], np.float16)
    kept = KeptFeatures(10, 1, 4)
    kept.add([("a", b"123", 0)], half[np.newaxis])
    examples, _ = kept.finish()
    np.testing.assert_array_equal(examples["a"].rows[0], half.astype(np.float32))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.integers(0, 400))
def test_share_is_the_largest_that_fits(counts: list[int], budget: int) -> None:
    k = share(counts, budget)
    taken = sum(min(count, k) for count in counts)
    assert k == 1 or taken <= budget
    assert k >= budget or sum(min(count, k + 1) for count in counts) > budget
