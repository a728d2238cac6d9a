"""The test rows in memory: each once, the same ones in any order, within the budget."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from stream_cgzsl.evaluation.holdout import Holdout, Place
from stream_cgzsl.windows.validation import hash_id

Given = tuple[str, str | None, float, Place]
ROW_BYTES = 4 * 2 + 512


def held(given: Any, rows: int = 1000) -> dict[str, list[float]]:
    """What is kept of these records with a budget of so many rows: the first number of each."""
    holdout = Holdout(2, rows * ROW_BYTES)
    for class_id, id, number, place in given:
        holdout.add(class_id, id, np.array([number, 1.0], np.float32), place)
    return {class_id: [float(row[0]) for row in rows] for class_id, rows in holdout.rows().items()}


def by_hash(*ids: str) -> list[str]:
    return sorted(ids, key=lambda id: hash_id("holdout", id))


def test_rows_are_ordered_by_the_hash_of_their_ids() -> None:
    ids = {str(n): float(n) for n in range(8)}
    given = [("a", id, number, Place(0, n)) for n, (id, number) in enumerate(ids.items())]
    assert held(given) == {"a": [ids[id] for id in by_hash(*ids)]}


def test_an_id_counts_once_and_the_lowest_place_wins() -> None:
    records: list[Given] = [("a", "x", 3.0, Place(1, 0)), ("b", "x", 1.0, Place(0, 7)), ("a", "x", 2.0, Place(0, 9))]
    for order in itertools.permutations(records):
        assert held(order) == {"b": [1.0]}


def test_records_without_id_are_never_duplicates() -> None:
    given = [("a", None, 1.0, Place(0, 0)), ("a", None, 1.0, Place(0, 1)), ("a", None, 2.0, Place(1, 0))]
    assert {c: sorted(rows) for c, rows in held(given).items()} == {"a": [1.0, 1.0, 2.0]}


def test_a_budget_is_shared_equally_and_rare_classes_keep_all_they_have() -> None:
    given = [("many", f"m{n}", float(n), Place(0, n)) for n in range(300)]
    given += [("few", f"f{n}", float(n), Place(1, n)) for n in range(5)]
    given += [("some", f"s{n}", float(n), Place(2, n)) for n in range(60)]
    kept = held(given, rows=65)
    assert kept["few"] == [float(id[1:]) for id in by_hash(*(f"f{n}" for n in range(5)))]
    assert kept["some"] == [float(id[1:]) for id in by_hash(*(f"s{n}" for n in range(60)))[:30]]
    assert kept["many"] == [float(id[1:]) for id in by_hash(*(f"m{n}" for n in range(300)))[:30]]


@pytest.mark.parametrize("seed", range(3))
def test_order_duplicates_and_reads_in_between_change_nothing(seed: int) -> None:
    given: list[Given] = [("ab"[n % 3 == 0], f"id{n}", float(n), Place(0, n)) for n in range(200)]
    given += [("c", None, float(n % 4), Place(1, n)) for n in range(90)]
    expected = held(given, rows=50)
    repeats = [(c, id, number, Place(2, n)) for n, (c, id, number, _) in enumerate(given) if id]
    shuffled = [*given, *repeats]
    random.Random(seed).shuffle(shuffled)
    holdout = Holdout(2, 50 * ROW_BYTES)
    for count, (class_id, id, number, place) in enumerate(shuffled):
        holdout.add(class_id, id, np.array([number, 1.0]), place)
        if count % 37 == 0:
            holdout.rows()
    assert {c: [float(row[0]) for row in rows] for c, rows in holdout.rows().items()} == expected
    assert {c: len(rows) for c, rows in expected.items()} == {"a": 16, "b": 16, "c": 16}


def test_memory_stays_within_the_budget_while_rows_come() -> None:
    holdout = Holdout(2, 100 * ROW_BYTES)
    most = 0
    for n in range(5000):
        holdout.add(f"class {n % 7}", str(n), np.zeros(2), Place(0, n))
        most = max(most, len(holdout))
    assert most <= 100 + 16 and len(holdout.rows()) == 7 and len(holdout) <= 100


def test_every_class_keeps_a_row_although_there_are_more_classes_than_the_budget_has_rows() -> None:
    given = [(f"class {n}", str(n), float(n), Place(0, n)) for n in range(300)]
    assert held(given, rows=10) == {f"class {n}": [float(n)] for n in range(300)}


def test_the_vector_is_copied() -> None:
    holdout, vector = Holdout(2, 1000), np.ones(2, np.float32)
    holdout.add("a", None, vector, Place(0, 0))
    vector[:] = 0
    np.testing.assert_array_equal(holdout.rows()["a"][0], [1, 1])
