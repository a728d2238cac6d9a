"""Which classes there are: their descriptions, and how many examples each has had. No moments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stream_cgzsl.errors import TrainingFailed, UsageError
from stream_cgzsl.learners.interface import Snapshot, Space
from stream_cgzsl.schemas import Array
from stream_cgzsl.windows.window import Description, Window


@dataclass(frozen=True, eq=False)
class Roster:
    """An immutable value: every change makes a new one. A class is seen when it has a count."""

    space: Space
    described: Mapping[str, Description]  # sorted by class id
    counts: Mapping[str, int]

    @classmethod
    def empty(cls, space: Space) -> Roster:
        return cls(space, {}, {})

    @cached_property
    def class_ids(self) -> tuple[str, ...]:
        return tuple(self.described)

    @cached_property
    def seen(self) -> npt.NDArray[np.bool_]:
        """[classes], in the order of `class_ids`."""
        return np.array([c in self.counts for c in self.described], dtype=np.bool_)

    @cached_property
    def examples(self) -> npt.NDArray[np.int64]:
        """[classes]: how many each has had."""
        return np.array([self.counts.get(c, 0) for c in self.described], dtype=np.int64)

    @cached_property
    def attributes(self) -> npt.NDArray[np.float32]:
        """[classes, attributes]"""
        vectors = [d.vector for d in self.described.values()]
        return np.array(vectors, np.float32).reshape(len(vectors), self.space.attributes)

    def after_descriptions(self, window: Window) -> Roster:
        """Removes the window's retired classes, then adds or revises its described ones."""
        described, counts = dict(self.described), dict(self.counts)
        for class_id in window.retired:
            described.pop(class_id, None)
            counts.pop(class_id, None)
        for given in window.described:
            vector = np.array(given.vector, np.float32)
            self._check_length(given.class_id, "attributes", vector, self.space.attributes)
            if not np.isfinite(vector).all():
                raise TrainingFailed(
                    f"window {window.number}: class {given.class_id!r} is described by numbers that are not finite; "
                    "describe it again"
                )
            described[given.class_id] = Description(given.class_id, vector, given.name)
        return Roster(self.space, dict(sorted(described.items())), counts)

    def after_features(self, window: Window) -> Roster:
        """Counts the window's rows. Its descriptions must have been added before."""
        counts = dict(self.counts)
        for class_id, given in window.features.items():
            if class_id not in self.described:
                raise UsageError(f"window {window.number} has features of class {class_id!r}, which is not described")
            self._check_length(class_id, "features", given.rows, self.space.features)
            if not np.isfinite(given.rows).all():
                raise TrainingFailed(
                    f"class {class_id!r} has features that are not finite; remove them and train again"
                )
            if len(given.rows):
                counts[class_id] = counts.get(class_id, 0) + given.count
        return Roster(self.space, self.described, counts)

    def _check_length(self, class_id: str, what: str, array: Array, expected: int) -> None:
        if array.shape[-1] != expected:
            raise UsageError(f"class {class_id!r} came with {array.shape[-1]} {what}; this stream has {expected}")

    def snapshot(self) -> Snapshot:
        names = [given.name for given in self.described.values()]
        meta = {"class_ids": list(self.class_ids), "names": names, "counts": self.examples.tolist()}
        return Snapshot({"attributes": self.attributes}, meta)

    @classmethod
    def restore(cls, space: Space, snapshot: Snapshot) -> Roster:
        meta = snapshot.meta
        described = {
            class_id: Description(class_id, np.array(vector, np.float32), name)
            for class_id, vector, name in zip(
                meta["class_ids"], snapshot.arrays["attributes"], meta["names"], strict=True
            )
        }
        return cls(space, described, {c: int(n) for c, n in zip(meta["class_ids"], meta["counts"], strict=True) if n})
