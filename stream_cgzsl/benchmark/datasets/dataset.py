"""A data set: features with labels, classes with attributes, and which rows train and test."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_cgzsl.learners.interface import Space

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

_TEST_EVERY = 5


@dataclass(frozen=True, eq=False)
class Dataset:
    """All indices count from 0. A class with training rows is seen, one that only has test rows is unseen.

    `extractor` says what made the features, as far as the files tell: for the benchmarks the name of their file.
    """

    name: str
    class_ids: tuple[str, ...]  # in the files' order, which is the order the settings go by
    attributes: Array  # [classes, attributes] float32
    features: Array  # [rows, features] float32
    labels: Rows  # [rows]
    train: Rows
    test_seen: Rows
    test_unseen: Rows
    extractor: str = ""

    @cached_property
    def seen_pool(self) -> tuple[str, ...]:
        """Classes with training rows, in file order."""
        return tuple(self.class_ids[label] for label in np.unique(self.labels[self.train]))

    @cached_property
    def unseen_pool(self) -> tuple[str, ...]:
        """Classes that only ever have test rows, in file order."""
        return tuple(self.class_ids[label] for label in np.unique(self.labels[self.test_unseen]))

    @cached_property
    def _label(self) -> dict[str, int]:
        return {class_id: label for label, class_id in enumerate(self.class_ids)}

    def label(self, class_id: str) -> int:
        """The class's place in `class_ids`."""
        return self._label[class_id]

    def vector(self, class_id: str) -> Array:
        """[attributes]"""
        return np.asarray(self.attributes[self._label[class_id]])

    def training_rows(self, class_id: str) -> Rows:
        return self._of(self.train, class_id)

    def test_rows(self, class_id: str) -> Rows:
        """Rows of seen and of unseen classes are never mixed in the benchmarks' splits."""
        seen = self._of(self.test_seen, class_id)
        return seen if len(seen) else self._of(self.test_unseen, class_id)

    def training(self, class_id: str) -> Array:
        """[rows, features]"""
        return np.asarray(self.features[self.training_rows(class_id)])

    def test(self, class_id: str) -> Array:
        """[rows, features]"""
        return np.asarray(self.features[self.test_rows(class_id)])

    def _of(self, rows: Rows, class_id: str) -> Rows:
        return np.asarray(rows[self.labels[rows] == self._label[class_id]], np.int64)

    def under(self, setting: str) -> Dataset:
        """The data as a setting uses it: in the static one every class is learned at some time.

        So there, classes that only have test rows give four in five of them to training (see `split_rows`).
        """
        if setting != "static" or not len(self.test_unseen):
            return self
        pairs = [split_rows(self._of(self.test_unseen, class_id)) for class_id in self.unseen_pool]
        return replace(
            self,
            train=np.concatenate([self.train, *(train for train, _ in pairs)]),
            test_seen=np.concatenate([self.test_seen, *(test for _, test in pairs)]),
            test_unseen=np.zeros(0, np.int64),
        )

    @cached_property
    def digest(self) -> str:
        """sha256 of everything but the name: equal digests, equal data."""
        found = hashlib.sha256("\0".join(self.class_ids).encode())
        for array in (self.attributes, self.features, self.labels, self.train, self.test_seen, self.test_unseen):
            found.update(str(array.shape).encode())
            found.update(np.ascontiguousarray(array).data)
        return found.hexdigest()

    @cached_property
    def signed(self) -> bool:
        """Whether any feature is negative."""
        return bool((self.features < 0).any())

    def space(self, seed: int = 0, shared: bool | None = None) -> Space:
        """What a stream of this data would fix."""
        return Space(self.attributes.shape[1], self.features.shape[1], self.signed, shared, seed)


def split_rows(rows: Rows) -> tuple[Rows, Rows]:
    """The rows of one class, to train and to test with: every fifth is for testing, of two to four the last one."""
    testing = np.arange(1, len(rows) + 1) % _TEST_EVERY == 0
    if 2 <= len(rows) < _TEST_EVERY:
        testing[-1] = True
    return rows[~testing], rows[testing]
