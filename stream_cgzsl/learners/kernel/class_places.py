"""A place for every class, with its attributes, count and mean; any change can be undone."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from stream_cgzsl.learners.interface import Snapshot, Space
from stream_cgzsl.learners.kernel.blocks import Blocks, Places
from stream_cgzsl.schemas import Array


class Taught(NamedTuple):
    """What examples say of some classes."""

    means: Array  # [classes, features] float64, zero without examples
    counts: Array  # [classes] float64; may fade
    examples: Places  # [classes]: how many there were ever
    clocks: Places  # [classes]: the clock that the counts are of


class ClassPlaces:
    """A class has a place from its first mention until it is retired; a free place is used again, the lowest first.

    So places follow from the windows alone, and what is computed in their order is the same after a restart.
    """

    def __init__(self, space: Space) -> None:
        self._features = space.features
        self._ids: list[str | None] = []
        self._places: dict[str, int] = {}
        self._free: list[int] = []  # a heap
        self._attributes = Blocks(space.attributes, np.float32)
        self._means = Blocks(space.features)
        self._counts = np.zeros(0)
        self._examples = np.zeros(0, np.int64)
        self._clocks = np.zeros(0, np.int64)
        self._undo: list[Callable[[], object]] = []

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """What is changed inside is as it was before when an error leaves it."""
        self._undo.clear()
        try:
            yield
        except BaseException:
            for undo in reversed(self._undo):
                undo()
            raise
        finally:
            self._undo.clear()

    # ---- what is there

    def __contains__(self, class_id: str) -> bool:
        return class_id in self._places

    @property
    def class_ids(self) -> list[str]:
        """Sorted."""
        return sorted(self._places)

    def of(self, class_ids: Iterable[str]) -> Places:
        return np.array([self._places[class_id] for class_id in class_ids], dtype=np.int64)

    def ids(self, places: Places) -> list[str]:
        return [class_id for place in places.tolist() if (class_id := self._ids[place]) is not None]

    def all(self) -> Places:
        return np.array([place for place, class_id in enumerate(self._ids) if class_id is not None], dtype=np.int64)

    def with_examples(self) -> Places:
        return np.flatnonzero(self._examples[: len(self._ids)])

    def attributes(self, places: Places) -> Array:
        """[classes, attributes] float32."""
        return self._attributes.take(places)

    def counts(self, places: Places) -> Array:
        return self._counts[places]

    def examples(self, places: Places) -> Places:
        return self._examples[places]

    def taught(self, places: Places) -> Taught:
        return Taught(self._means.take(places), self._counts[places], self._examples[places], self._clocks[places])

    # ---- changes, each with what undoes it

    def add(self, class_id: str) -> int:
        if self._free:
            place = heapq.heappop(self._free)
            self._undo.append(lambda: heapq.heappush(self._free, place))
        else:
            place = len(self._ids)
            self._ids.append(None)
            self._undo.append(self._ids.pop)
            if place == len(self._counts):
                more = max(256, place)
                self._counts = np.append(self._counts, np.zeros(more))
                self._examples = np.append(self._examples, np.zeros(more, np.int64))
                self._clocks = np.append(self._clocks, np.zeros(more, np.int64))
        self._name(place, class_id)
        self._places[class_id] = place
        self._undo.append(lambda: self._places.pop(class_id))
        return place

    def drop(self, class_id: str) -> None:
        place = self._places.pop(class_id)
        self._undo.append(lambda: self._places.update({class_id: place}))
        self._name(place, None)
        self.describe(place, self._attributes.take(np.array([place]))[0] * 0)
        if self._examples[place]:
            none = np.zeros(1, np.int64)
            self.teach(np.array([place]), Taught(np.zeros((1, self._features)), np.zeros(1), none, none))
        heapq.heappush(self._free, place)
        self._undo.append(lambda: self._take_back(place))

    def describe(self, place: int, vector: Array) -> None:
        places = np.array([place])
        before = self._attributes.take(places)
        self._attributes.put(places, vector[None])
        self._undo.append(lambda: self._attributes.put(places, before))

    def teach(self, places: Places, taught: Taught) -> None:
        before = self.taught(places)
        self._put(places, taught)
        self._undo.append(lambda: self._put(places, before))

    def fade(self, clock: int, fading: Callable[[Array, Places], Array]) -> None:
        """All counts become what `fading` leaves of them at this clock."""
        before = self._counts, self._clocks
        self._recount(fading(self._counts, self._clocks), np.full_like(self._clocks, clock))
        self._undo.append(lambda: self._recount(*before))

    def _recount(self, counts: Array, clocks: Places) -> None:
        self._counts, self._clocks = counts, clocks

    def _take_back(self, place: int) -> None:
        self._free.remove(place)
        heapq.heapify(self._free)

    def _name(self, place: int, class_id: str | None) -> None:
        before = self._ids[place]
        self._ids[place] = class_id
        self._undo.append(lambda: self._ids.__setitem__(place, before))

    def _put(self, places: Places, taught: Taught) -> None:
        self._means.put(places, taught.means)
        self._counts[places], self._examples[places], self._clocks[places] = taught[1:]

    # ---- snapshots

    def snapshot(self) -> Snapshot:
        size = len(self._ids)
        arrays = {
            "attributes": self._attributes.take(np.arange(size)),
            "means": self._means.take(self.with_examples()),
            "counts": self._counts[:size].copy(),
            "examples": self._examples[:size].copy(),
            "clocks": self._clocks[:size].copy(),
        }
        return Snapshot(arrays, {"class_ids": list(self._ids)})

    @classmethod
    def restore(cls, space: Space, snapshot: Snapshot) -> ClassPlaces:
        arrays, found = snapshot.arrays, cls(space)
        found._ids = list(snapshot.meta["class_ids"])
        found._places = {class_id: place for place, class_id in enumerate(found._ids) if class_id is not None}
        found._free = [place for place, class_id in enumerate(found._ids) if class_id is None]  # sorted, so a heap
        found._counts = np.array(arrays["counts"], dtype=np.float64)
        found._examples = np.array(arrays["examples"], dtype=np.int64)
        found._clocks = np.array(arrays["clocks"], dtype=np.int64)
        found._attributes.put(np.arange(len(found._ids)), arrays["attributes"])
        found._means.put(found.with_examples(), arrays["means"])
        return found
