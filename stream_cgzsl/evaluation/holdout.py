"""The labelled examples a generation is tested with: in memory, within a budget, the same in any order of arrival."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from stream_cgzsl.schemas import Array
from stream_cgzsl.windows.bottom_k import BottomK
from stream_cgzsl.windows.validation import hash_id

_OVERHEAD_BYTES = 512  # what Python needs for a row besides its numbers


class Place(NamedTuple):
    """Where a record is in the holdout topic."""

    partition: int
    offset: int


class Holdout:
    """Test rows by class. Rows of classes that are not described yet are kept too: their description may follow.

    An id counts once: of several records with one id, the one at the lowest place. Where there are more rows than
    `budget_bytes` hold, every class keeps those with the smallest hashes of their ids (of their values, if they have
    none), equally many per class as far as it has them. What is kept depends on the records alone.
    """

    def __init__(self, features: int, budget_bytes: int) -> None:
        self._bottom = BottomK(budget_bytes // (4 * features + _OVERHEAD_BYTES))
        self._slack = max(16, self._bottom.budget // 8)  # room between two trims, so that trimming stays rare
        self._most = self._bottom.budget + self._slack
        self._rows: dict[str, dict[tuple[bytes, Place], Array]] = {}
        self._held: dict[bytes, tuple[str, Place]] = {}  # the class and place of every kept hash

    def __len__(self) -> int:
        return len(self._held)

    def add(self, class_id: str, id: str | None, vector: Array, place: Place) -> None:
        """Copies the vector. A place must not be added twice."""
        row = np.array(vector, np.float32)
        digest = _hash_value(row, place) if id is None else hash_id("holdout", id)
        counts = self._bottom.counts
        held = self._held.get(digest)
        if held is not None:
            other_class, other_place = held
            if other_place < place:
                return
            del self._rows[other_class][digest, other_place], self._held[digest]
            counts[other_class] -= 1
        counts[class_id] = counts.get(class_id, 0) + 1
        if digest > self._bottom.ceilings.get(class_id, digest):
            return
        self._rows.setdefault(class_id, {})[digest, place] = row
        self._held[digest] = (class_id, place)
        if len(self._held) > self._most:
            self._trim()

    def rows(self) -> dict[str, list[Array]]:
        """What is kept, by class, each class's rows in the order of their hashes."""
        self._trim()
        return {class_id: [rows[entry] for entry in sorted(rows)] for class_id, rows in self._rows.items() if rows}

    def _trim(self) -> None:
        for class_id, _, drop in self._bottom.trim(self._rows):
            for entry in drop:
                del self._rows[class_id][entry], self._held[entry[0]]
        self._most = max(self._bottom.budget, len(self._held)) + self._slack  # every class keeps at least one


def _hash_value(row: Array, place: Place) -> bytes:
    """Equal values without an id are several rows: the place distinguishes them, the hash decides which are kept."""
    return hashlib.sha256(row.data).digest()[:16] + b"%d/%d" % place
