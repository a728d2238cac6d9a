"""What is known of every class: how it was described, and what its rows left behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners.features import transform_of
from stream_cgzsl.learners.interface import Snapshot, Space
from stream_cgzsl.learners.moments import Moments
from stream_cgzsl.windows.window import Description, Window

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Statistics:
    """An immutable value: every change makes a new one, so a failed window leaves nothing behind.

    A class is seen when it has a count. Retiring a class drops its description, count and mean; its share of the
    pooled scatter stays (`Moments.without`). A retired class that is described again starts fresh, unseen.
    """

    space: Space
    described: Mapping[str, Description]  # sorted by class id
    moments: Moments

    @classmethod
    def empty(cls, space: Space) -> Statistics:
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
    def attributes(self) -> Array:
        """[classes, attributes] float64, in the order of `class_ids`."""
        vectors = [d.vector for d in self.described.values()]
        return np.array(vectors, dtype=np.float64).reshape(len(vectors), self.space.attributes)

    @cached_property
    def means(self) -> Array:
        """[seen classes, features] float64, in the order of `class_ids`."""
        means = [self.moments.means[c] for c in self.described if c in self.moments.counts]
        return np.array(means, dtype=np.float64).reshape(len(means), self.space.features)

    def after_descriptions(self, window: Window) -> Statistics:
        """The window's retired classes leave, then its described ones come or are revised. No features."""
        described, moments = dict(self.described), self.moments
        for class_id in window.retired:
            described.pop(class_id, None)
            moments = moments.without(class_id)
        for description in window.described:
            self._check_length(description.class_id, "attributes", description.vector, self.space.attributes)
            described[description.class_id] = Description(
                description.class_id, np.array(description.vector, dtype=np.float32), description.name
            )
        return Statistics(self.space, dict(sorted(described.items())), moments)

    def after_features(
        self, window: Window, device: torch.device | str = "cpu", check: Callable[[], None] = lambda: None
    ) -> Statistics:
        """The window's rows on top. Its descriptions must have been taken already."""
        for class_id, examples in window.features.items():
            if class_id not in self.described:
                raise UsageError(f"window {window.number} has features of class {class_id!r}, which nobody described")
            self._check_length(class_id, "features", examples.rows, self.space.features)
        if not window.features:
            return self
        fresh = Moments.of(window.features, self.space.features, self.transform, device, check)
        return self.learned(fresh, device)

    def learned(self, fresh: Moments, device: torch.device | str = "cpu") -> Statistics:
        """With the moments of more rows merged in."""
        return Statistics(self.space, self.described, self.moments.merge(fresh, device))

    def _check_length(self, class_id: str, what: str, array: Array, expected: int) -> None:
        if array.shape[-1] != expected:
            raise UsageError(f"class {class_id!r} came with {array.shape[-1]} {what}; this stream has {expected}")

    def snapshot(self) -> Snapshot:
        names = [self.described[c].name for c in self.class_ids]
        counts = [self.moments.counts.get(c, 0) for c in self.class_ids]
        return Snapshot(
            {
                "attributes": self.attributes.astype(np.float32),
                "means": self.means,
                "scatter": np.ascontiguousarray(self.moments.scatter[np.triu_indices(self.space.features)]),
            },
            {
                "class_ids": list(self.class_ids),
                "names": names,
                "counts": counts,
                "rows": self.moments.rows,
                "freedom": self.moments.freedom,
            },
        )

    @classmethod
    def restore(cls, space: Space, snapshot: Snapshot) -> Statistics:
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
