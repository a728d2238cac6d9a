"""The labelled examples a generation is tested with: kept in memory, within a budget, the same ones in whatever order
they came.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from stream_cgzsl.generation import Array
from stream_cgzsl.windows.gather import hash_id
from stream_cgzsl.windows.kept import share

_BESIDE_BYTES = 512  # what Python needs for a row besides its numbers


class Place(NamedTuple):
    partition: int
    offset: int


class _Row(NamedTuple):
    place: Place
    vector: Array


class Holdout:
    """Test rows by class, of known and of unknown classes alike: those that are not described yet wait here.

    An id counts once: of several records with one id, that at the lowest place does. Where there are more rows than
    `budget_bytes` hold, every class keeps those with the smallest hashes of their ids (of their values, where they have
    none), equally many of each class as far as it has them. What is kept depends on the records alone.
    """

    def __init__(self, features: int, budget_bytes: int) -> None:
        self._budget = max(1, budget_bytes // (4 * features + _BESIDE_BYTES))
        self._slack = max(16, self._budget // 8)  # room between two trims, so that trimming stays rare
        self._most = self._budget + self._slack
        self._rows: dict[str, dict[bytes, _Row]] = {}
        self._class_of: dict[bytes, str] = {}  # the class of each kept row
        self._counts: dict[str, int] = {}
        self._ceiling: dict[str, bytes] = {}  # class -> no hash above this one is kept any more

    def __len__(self) -> int:
        return len(self._class_of)

    def add(self, class_id: str, id: str | None, vector: Array, place: Place) -> None:
        """Takes a copy of the vector. A place must not be added twice."""
        row = np.array(vector, np.float32)
        key = _by_value(row, place) if id is None else hash_id("holdout", id)
        holder = self._class_of.get(key)
        if holder is not None:
            if self._rows[holder][key].place < place:
                return
            del self._rows[holder][key]
            self._counts[holder] -= 1
        self._counts[class_id] = self._counts.get(class_id, 0) + 1
        if key > self._ceiling.get(class_id, key):
            self._class_of.pop(key, None)
            return
        self._rows.setdefault(class_id, {})[key] = _Row(place, row)
        self._class_of[key] = class_id
        if len(self._class_of) > self._most:
            self._trim()

    def rows(self) -> dict[str, list[Array]]:
        """What is kept, by class, each class's rows in the order of their hashes."""
        if sum(self._counts.values()) > self._budget:
            self._trim()
        return {class_id: [rows[key].vector for key in sorted(rows)] for class_id, rows in self._rows.items() if rows}

    def _trim(self) -> None:
        """Brings every class down to its share. Shares only fall: no row that is let go here is missed later."""
        limit = share(self._counts.values(), self._budget)
        for class_id, rows in self._rows.items():
            if len(rows) > limit:
                keys = sorted(rows)
                for key in keys[limit:]:
                    del rows[key], self._class_of[key]
                self._ceiling[class_id] = keys[limit - 1]
        self._most = max(self._budget, len(self._class_of)) + self._slack  # every class keeps at least one


def _by_value(row: Array, place: Place) -> bytes:
    """Equal values without an id are several rows: the place tells them apart, the hash decides which are kept."""
    return hashlib.sha256(row.data).digest()[:16] + b"%d/%d" % place
