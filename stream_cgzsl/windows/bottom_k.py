"""A bounded sample of labelled rows: per class those with the smallest hashes, in any order of arrival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TypeVar

import numpy as np

from stream_cgzsl.schemas import Array
from stream_cgzsl.windows.window import Examples

Entry = TypeVar("Entry", bound=tuple[bytes, object])
"""A row in a store: its hash, and something that distinguishes it from another row with the same hash."""

_class = itemgetter(0)


class BottomK:
    """Per class the exact count, and which hashes stay: the k smallest.

    k is the largest number for which all classes together keep at most `budget` rows, but at least 1. Counts only grow,
    so k only falls: a hash above its class's ceiling could never be in the final sample.
    """

    def __init__(self, budget: int) -> None:
        self.budget = max(1, budget)
        self.counts: dict[str, int] = {}
        self.ceilings: dict[str, bytes] = {}  # class -> no hash above this one stays

    def trim(self, kept: Mapping[str, Collection[Entry]]) -> Iterator[tuple[str, list[Entry], list[Entry]]]:
        """For every class with more than k entries: those that stay, in order, and those that the store must drop."""
        k = share(self.counts.values(), self.budget)
        for class_id, entries in kept.items():
            if len(entries) > k:
                ordered = sorted(entries)
                self.ceilings[class_id] = ordered[k - 1][0]
                yield class_id, ordered[:k], ordered[k:]


class KeptFeatures:
    """The features of a window that are trained on: a bottom-k sample, in one array."""

    def __init__(self, budget_rows: int, expected_rows: int, features: int) -> None:
        self._bottom = BottomK(budget_rows)
        slack = max(16, self._bottom.budget // 32)  # room between two trims, so that trimming stays rare
        size = min(expected_rows, self._bottom.budget + slack)
        self._rows = np.empty((size, features), np.float32)  # untouched pages take no memory
        self._free = list(range(size - 1, -1, -1))
        self._kept: dict[str, list[tuple[bytes, int]]] = {}  # class -> (hash, index in _rows)

    def add(self, arrivals: Sequence[tuple[str, bytes, int]], rows: Array) -> None:
        """Features by class and hash, each with its index in `rows`; indices only go up.

        Rows are copied all together: each copy releases the interpreter lock and may have to wait to get it back.
        """
        counts, ceilings = self._bottom.counts, self._bottom.ceilings
        count = len(arrivals)
        if not ceilings and 0 < count <= len(self._free):  # every one of them is kept
            places = self._free[: -count - 1 : -1]
            del self._free[-count:]
            for (class_id, digest, _), slot in zip(arrivals, places, strict=True):
                self._kept.setdefault(class_id, []).append((digest, slot))
            for class_id, more in Counter(map(_class, arrivals)).items():
                counts[class_id] = counts.get(class_id, 0) + more
            self._store(places, rows, [index for *_, index in arrivals])
            return
        slots: list[int] = []
        indices: list[int] = []
        for class_id, digest, index in arrivals:
            counts[class_id] = counts.get(class_id, 0) + 1
            ceiling = ceilings.get(class_id)
            if ceiling is not None and digest > ceiling:
                continue
            if not self._free:
                self._store(slots, rows, indices)  # trimming may free one of these slots
                slots, indices = [], []
                self._trim()
            if not self._free:
                self._grow()
            slot = self._free.pop()
            slots.append(slot)
            indices.append(index)
            self._kept.setdefault(class_id, []).append((digest, slot))
        self._store(slots, rows, indices)

    def replace(self, class_id: str, digest: bytes, row: Array) -> None:
        """Another row in place of the one that was added with this hash, if that is still kept."""
        for kept, slot in self._kept.get(class_id, ()):
            if kept == digest:
                self._rows[slot] = row

    def _store(self, slots: list[int], rows: Array, indices: list[int]) -> None:
        if not slots:
            return
        chosen = rows if len(indices) == len(rows) else rows[indices]
        if slots == list(range(slots[0], slots[0] + len(slots))):
            self._rows[slots[0] : slots[0] + len(slots)] = chosen
        else:
            self._rows[slots] = chosen

    def _grow(self) -> None:
        """More classes than the budget has rows: each still keeps one."""
        old = len(self._rows)
        self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._free.extend(range(len(self._rows) - 1, old - 1, -1))

    def _trim(self) -> None:
        for class_id, stay, drop in self._bottom.trim(self._kept):
            self._kept[class_id] = stay
            self._free.extend(slot for _, slot in drop)

    def finish(self) -> tuple[dict[str, Examples], dict[str, list[bytes]]]:
        """The kept features by class (sorted by id), each class's rows ordered by hash, and those hashes.

        Rows that take much of the budget are sorted in place, without a second copy. Nothing can be added afterwards.
        """
        self._trim()
        order: list[int] = []
        spans: dict[str, tuple[int, int]] = {}
        hashes: dict[str, list[bytes]] = {}
        for class_id in sorted(self._kept):
            kept = sorted(self._kept[class_id], key=lambda entry: entry[0])
            spans[class_id] = (len(order), len(order) + len(kept))
            order.extend(slot for _, slot in kept)
            hashes[class_id] = [digest for digest, _ in kept]
        if len(order) <= self._bottom.budget // 4:
            self._rows = self._rows[order]
        else:
            _permute(self._rows, order)
        self._rows.flags.writeable = False
        examples = {c: Examples(self._bottom.counts[c], self._rows[a:b]) for c, (a, b) in spans.items()}
        return examples, hashes


def share(counts: Collection[int], budget: int) -> int:
    """The largest k with sum(min(count, k)) <= budget, but at least 1."""
    left, remaining = budget, len(counts)
    for count in sorted(counts):
        if count * remaining > left:
            return max(1, left // remaining)
        left -= count
        remaining -= 1
    return budget


def _permute(rows: Array, order: list[int]) -> None:
    """Moves row order[i] to index i for all i, each row once: first along chains from a free row, then cycles."""
    source = dict(enumerate(order))  # index -> the row that belongs there
    needed = set(order)
    for start in [index for index in source if index not in needed]:  # its row belongs nowhere
        index = start
        while index in source:
            origin = source.pop(index)
            rows[index] = rows[origin]
            index = origin
    while source:
        start, origin = source.popitem()
        if origin == start:
            continue
        spare, index = rows[start].copy(), start
        while origin != start:
            rows[index] = rows[origin]
            index, origin = origin, source.pop(origin)
        rows[index] = spare
