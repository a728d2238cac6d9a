"""What is known of every class: its description, and the moments of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners.interface import Snapshot, Space
from stream_cgzsl.learners.statistics.features import transform_of
from stream_cgzsl.learners.statistics.moments import Moments
from stream_cgzsl.schemas import Array
from stream_cgzsl.windows.window import Description, Window


@dataclass(frozen=True, eq=False)
class ClassStatistics:
    """An immutable value: every change makes a new one, so a failed window has no effect.

    A class is seen when it has a count. Retiring a class drops its description, count and mean; its share of the
    pooled scatter stays (`Moments.without`). A retired class that is described again starts fresh, unseen.
    """

    space: Space
    described: Mapping[str, Description]  # sorted by class id
    moments: Moments

    @classmethod
    def empty(cls, space: Space) -> ClassStatistics:
        return cls(space, {}, Moments.none(space.features))

    @property
    def transform(self) -> str:
        return transform_of(self.space.signed)

    @cached_property
    def class_ids(self) -> tuple[str, ...]:
        return tuple(self.described)

    @cached_property
    def seen(self) -> npt.NDArray[np.bool_]:
        """[classes], in the order of `class_ids`."""
        return np.array([c in self.moments.counts for c in self.described], dtype=np.bool_)

    @cached_property
    def examples(self) -> npt.NDArray[np.int64]:
        """[classes]: how many each has had, in the order of `class_ids`."""
        return np.array([self.moments.counts.get(c, 0) for c in self.described], dtype=np.int64)

    @cached_property
    def attributes(self) -> Array:
        """[classes, attributes] float64, in the order of `class_ids`."""
        vectors = [d.vector for d in self.described.values()]
        return np.array(vectors, dtype=np.float64).reshape(len(vectors), self.space.attributes)

    @cached_property
    def means(self) -> Array:
        """[seen classes, features] float64, in the order of `class_ids`."""
        means = [self.moments.means[c] for c in self.described if c in self.moments.counts]
        return np.array(means, dtype=np.float64).reshape(len(means), self.space.features)

    @cached_property
    def counts(self) -> Array:
        """[seen classes] float64, in the order of `class_ids`."""
        return self.examples[self.seen].astype(np.float64)

    def after_descriptions(self, window: Window) -> ClassStatistics:
        """Removes the window's retired classes, then adds or revises its described ones. No features."""
        described, moments = dict(self.described), self.moments
        for class_id in window.retired:
            described.pop(class_id, None)
            moments = moments.without(class_id)
        for description in window.described:
            check_length(description.class_id, "attributes", description.vector, self.space.attributes)
            described[description.class_id] = Description(
                description.class_id, np.array(description.vector, dtype=np.float32), description.name
            )
        return ClassStatistics(self.space, dict(sorted(described.items())), moments)

    def after_features(
        self, window: Window, device: torch.device | str = "cpu", check: Callable[[], None] = lambda: None
    ) -> ClassStatistics:
        """Adds the window's rows. Its descriptions must have been added before."""
        for class_id, examples in window.features.items():
            if class_id not in self.described:
                raise UsageError(f"window {window.number} has features of class {class_id!r}, which is not described")
            check_length(class_id, "features", examples.rows, self.space.features)
        if not window.features:
            return self
        fresh = Moments.of(window.features, self.space.features, self.transform, device, check)
        return self.learned(fresh, device)

    def learned(self, fresh: Moments, device: torch.device | str = "cpu") -> ClassStatistics:
        """With the moments of more rows merged in."""
        return ClassStatistics(self.space, self.described, self.moments.merge(fresh, device))

    def snapshot(self) -> Snapshot:
        names = [self.described[c].name for c in self.class_ids]
        return Snapshot(
            {
                "attributes": self.attributes.astype(np.float32),
                "means": self.means,
                "scatter": np.ascontiguousarray(self.moments.scatter[np.triu_indices(self.space.features)]),
            },
            {
                "class_ids": list(self.class_ids),
                "names": names,
                "counts": self.examples.tolist(),
                "rows": self.moments.rows,
                "freedom": self.moments.freedom,
            },
        )

    @classmethod
    def restore(cls, space: Space, snapshot: Snapshot) -> ClassStatistics:
        arrays, meta = snapshot.arrays, snapshot.meta
        described = {
            class_id: Description(class_id, np.array(vector, dtype=np.float32), name)
            for class_id, vector, name in zip(meta["class_ids"], arrays["attributes"], meta["names"], strict=True)
        }
        counts = {c: int(n) for c, n in zip(meta["class_ids"], meta["counts"], strict=True) if n}
        means = {c: np.array(mean) for c, mean in zip(counts, arrays["means"], strict=True)}
        scatter = np.zeros((space.features, space.features))
        scatter[np.triu_indices(space.features)] = arrays["scatter"]
        scatter += np.triu(scatter, 1).T
        return cls(space, described, Moments(counts, means, scatter, int(meta["rows"]), int(meta["freedom"])))


def check_length(class_id: str, what: str, array: Array, expected: int) -> None:
    if array.shape[-1] != expected:
        raise UsageError(f"class {class_id!r} came with {array.shape[-1]} {what}; this stream has {expected}")
