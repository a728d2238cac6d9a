"""Ids that were accepted, as 16-byte hashes in sorted arrays: a set of Python objects takes five times the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt

_HASH = np.dtype("S16")
Hashes = npt.NDArray[np.bytes_]
Numbers = npt.NDArray[np.int64]


def _array(digests: Iterable[bytes]) -> Hashes:
    return np.frombuffer(b"".join(digests), _HASH)


class Ids(Set[bytes]):
    """An immutable set of hashes."""

    def __init__(self, digests: Iterable[bytes] = ()) -> None:
        self._hashes: Hashes = digests._hashes if isinstance(digests, Ids) else np.unique(_array(digests))

    @classmethod
    def of_array(cls, array: npt.NDArray[Any]) -> Ids:
        """What `array` gave."""
        ids = cls()
        ids._hashes = np.unique(np.frombuffer(array.tobytes(), _HASH))
        return ids

    @classmethod
    def union(cls, sets: Sequence[Ids]) -> Ids:
        ids = cls()
        if sets:
            ids._hashes = sets[0]._hashes if len(sets) == 1 else np.unique(np.concatenate([s._hashes for s in sets]))
        return ids

    def array(self) -> npt.NDArray[np.uint8]:
        """All hashes, one after the other in their order."""
        return np.frombuffer(self._hashes.tobytes(), np.uint8)

    def has(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Which of these are in the set."""
        return _find(self._hashes, hashes)[1]

    def __contains__(self, digest: object) -> bool:
        return isinstance(digest, bytes) and bool(self.has(_array([digest]))[0])

    def __iter__(self) -> Iterator[bytes]:
        data = self._hashes.tobytes()
        return (data[start : start + 16] for start in range(0, len(data), 16))

    def __len__(self) -> int:
        return len(self._hashes)


KNOWN, NEW = -2, -1
"""Instead of a number: an id of an earlier window, and one that was not accepted before."""


class Accepted:
    """The ids that a window has accepted so far, each with a number, besides the `known` ones of earlier windows.

    They are looked up and added batch by batch. Kept in sorted arrays that grow geometrically, so that an id costs 24
    bytes, and the merging little.
    """

    def __init__(self, known: Ids) -> None:
        self._known = known
        self._runs: list[tuple[Hashes, Numbers]] = []
        self._batch: dict[bytes, int] = {}  # added since the last `end_batch`
        self._changed: dict[bytes, int] = {}  # renumbered since then

    def look_up(self, digests: Sequence[bytes]) -> list[int]:
        """The number of each, `KNOWN` or `NEW`. What came since the last `end_batch` is not considered: see `get`."""
        hashes = _array(digests)
        numbers = np.where(self._known.has(hashes), KNOWN, NEW)
        for run, values in self._runs:
            places, found = _find(run, hashes)
            numbers[found] = values[places[found]]
        found_numbers: list[int] = numbers.tolist()
        return found_numbers

    def get(self, digest: bytes, looked_up: int) -> int:
        """What `look_up` said, or the number that it was given since."""
        return self._batch.get(digest, self._changed.get(digest, looked_up))

    def add(self, digest: bytes, number: int) -> None:
        self._batch[digest] = number

    def add_all(self, digests: Iterable[bytes], numbers: Iterable[int]) -> None:
        self._batch.update(zip(digests, numbers, strict=True))

    def renumber(self, digest: bytes, number: int) -> None:
        """Gives an id that was added before another number."""
        if digest in self._batch:
            self._batch[digest] = number
            return
        self._changed[digest] = number
        for run, numbers in self._runs:
            places, found = _find(run, _array([digest]))
            numbers[places[found]] = number

    def end_batch(self) -> None:
        if self._batch:
            digests = sorted(self._batch)
            self._runs.append((_array(digests), np.array([self._batch[d] for d in digests], np.int64)))
        self._batch, self._changed = {}, {}
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 4 * len(self._runs[-1][0]):
            (large, numbers), (small, others) = self._runs[-2:]
            places = np.searchsorted(large, small)
            self._runs[-2:] = [(np.insert(large, places, small), np.insert(numbers, places, others))]

    def ids(self) -> Ids:
        return Ids.union([Ids.of_array(run) for run, _ in self._runs])


def _find(run: Hashes, hashes: Hashes) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Where in a sorted array these are, and whether they are there at all."""
    if not len(run):
        return np.zeros(len(hashes), np.intp), np.zeros(len(hashes), np.bool_)
    places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
    return places, run[places] == hashes
