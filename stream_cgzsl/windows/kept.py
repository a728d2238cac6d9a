"""The features a window keeps: bounded memory, and the same ones whatever the order they came in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_cgzsl.windows.window import Examples

Array = npt.NDArray[Any]


class KeptSample:
    """Per class the exact count, and the k features with the smallest hashes.

    k is the largest number for which all classes together keep at most `budget_rows`; while they have fewer, everything
    is kept. Counts only grow, so k only falls: a feature once rejected could never have been in the final sample.
    """

    def __init__(self, budget_rows: int, expected_rows: int, features: int) -> None:
        self._budget = max(1, budget_rows)
        slack = max(16, self._budget // 32)  # room between two trims, so that trimming stays rare
        self._rows = np.empty(
            (min(expected_rows, self._budget + slack), features), np.float32
        )  # untouched pages are free
        self._free = list(range(len(self._rows) - 1, -1, -1))
        self._counts: dict[str, int] = {}
        self._kept: dict[str, list[tuple[bytes, int]]] = {}  # class -> (hash, slot)
        self._ceiling: dict[str, bytes] = {}  # class -> no hash above this one can be in the final sample

    def add(self, arrivals: Iterable[tuple[str, bytes, int]], rows: Array) -> None:
        """Features by class and hash, each with its place in `rows`; places only go up.

        Rows are copied all together: a copy gives up the interpreter's lock, and who gives it up often waits often.
        """
        slots: list[int] = []
        places: list[int] = []
        for class_id, digest, place in arrivals:
            self._counts[class_id] = self._counts.get(class_id, 0) + 1
            ceiling = self._ceiling.get(class_id)
            if ceiling is not None and digest > ceiling:
                continue
            if not self._free:
                self._store(slots, rows, places)  # a slot of these may be given to another
                slots, places = [], []
                self._trim()
            if not self._free:
                self._grow()
            slot = self._free.pop()
            slots.append(slot)
            places.append(place)
            self._kept.setdefault(class_id, []).append((digest, slot))
        self._store(slots, rows, places)

    def _store(self, slots: list[int], rows: Array, places: list[int]) -> None:
        self._rows[slots] = rows if len(places) == len(rows) else rows[places]

    def _grow(self) -> None:
        """More classes than the budget has rows: each still keeps one."""
        old = len(self._rows)
        self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._free.extend(range(len(self._rows) - 1, old - 1, -1))

    def _trim(self) -> None:
        """Brings every class down to the k of the counts so far."""
        limit = share(self._counts.values(), self._budget)
        for class_id, kept in self._kept.items():
            if len(kept) > limit:
                kept.sort()
                self._free.extend(slot for _, slot in kept[limit:])
                del kept[limit:]
                self._ceiling[class_id] = kept[-1][0]

    def finish(self) -> tuple[dict[str, Examples], dict[str, list[bytes]]]:
        """The kept features by class (sorted by id), each class's rows ordered by hash, and those hashes.

        The rows are moved into that order where they stand; nothing is copied, and nothing can be added any more.
        """
        if sum(self._counts.values()) > self._budget:
            self._trim()
        order: list[int] = []
        spans: dict[str, tuple[int, int]] = {}
        hashes: dict[str, list[bytes]] = {}
        for class_id in sorted(self._kept):
            kept = sorted(self._kept[class_id], key=lambda pair: pair[0])
            spans[class_id] = (len(order), len(order) + len(kept))
            order.extend(slot for _, slot in kept)
            hashes[class_id] = [digest for digest, _ in kept]
        _permute(self._rows, order)
        self._rows.flags.writeable = False
        examples = {c: Examples(self._counts[c], self._rows[a:b]) for c, (a, b) in spans.items()}
        return examples, hashes


def share(counts: Any, budget: int) -> int:
    """The largest k with sum(min(count, k)) <= budget, but at least 1."""
    left, remaining = budget, len(counts)
    for count in sorted(counts):
        if count * remaining > left:
            return max(1, left // remaining)
        left -= count
        remaining -= 1
    return budget


def _permute(rows: Array, order: list[int]) -> None:
    """Moves row order[i] to place i, for all i, each row once: along chains that end at a free place, then along cycles."""
    waiting = dict(enumerate(order))  # place -> the row it waits for
    holding = {slot: place for place, slot in waiting.items()}
    for start in [place for place in waiting if place not in holding]:  # nobody waits for what stands there
        place = start
        while place in waiting:
            slot = waiting.pop(place)
            rows[place] = rows[slot]
            place = slot
    while waiting:
        start, slot = waiting.popitem()
        if slot == start:
            continue
        spare, place = rows[start].copy(), start
        while slot != start:
            rows[place] = rows[slot]
            place, slot = slot, waiting.pop(slot)
        rows[place] = spare
