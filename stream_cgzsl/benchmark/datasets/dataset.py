"""A data set: labelled features, classes with attributes, and a split into training and test rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stream_cgzsl.learners.interface import Space
from stream_cgzsl.schemas import Array

Rows = npt.NDArray[np.int64]

_TEST_EVERY = 5
_PUBLISHED_SEED = 42


@dataclass(frozen=True, eq=False)
class Dataset:
    """All indices count from 0. A class with training rows is seen, one that only has test rows is unseen.

    `extractor` says what computed the features: for the benchmarks, the name of their file.
    """

    name: str
    class_ids: tuple[str, ...]  # in the order of the files, which decides the order of tasks
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
        """The index of the class in `class_ids`."""
        return self._label[class_id]

    def vector(self, class_id: str) -> Array:
        """[attributes]"""
        return np.asarray(self.attributes[self._label[class_id]])

    def training_rows(self, class_id: str) -> Rows:
        return self._of(self.train, class_id)

    def test_rows(self, class_id: str) -> Rows:
        """The test rows of a class; it is either among the seen or among the unseen ones."""
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
        """The data as a setting uses it.

        In the static and the trickle setting every class may be learned, so a class that only has test rows gives four
        in five of them to training (see `split_rows`).
        """
        if setting not in ("static", "trickle") or not len(self.test_unseen):
            return self
        pairs = [split_rows(self._of(self.test_unseen, class_id)) for class_id in self.unseen_pool]
        return replace(
            self,
            train=np.concatenate([self.train, *(train for train, _ in pairs)]),
            test_seen=np.concatenate([self.test_seen, *(test for _, test in pairs)]),
            test_unseen=np.zeros(0, np.int64),
        )

    def split_as_published(self) -> Dataset:
        """The split of the loader that the authors published for their static setting: a fifth of all rows, drawn at
        random whatever their class, is for testing. It is that of scikit-learn's `train_test_split(test_size=0.2,
        random_state=42)`, row by row.
        """
        rows = np.random.RandomState(_PUBLISHED_SEED).permutation(len(self.labels))  # numpy keeps this generator as is
        testing = -(-len(rows) // _TEST_EVERY)
        return replace(self, train=rows[testing:], test_seen=rows[:testing], test_unseen=np.zeros(0, np.int64))

    @cached_property
    def digest(self) -> str:
        """sha256 of everything except the name: equal digests mean equal data."""
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
        """What a stream of this data fixes at its first start."""
        return Space(self.attributes.shape[1], self.features.shape[1], self.signed, shared, seed)


def split_rows(rows: Rows) -> tuple[Rows, Rows]:
    """Splits the rows of one class into training and test rows: every fifth is for testing, of two to four the last."""
    testing = np.arange(1, len(rows) + 1) % _TEST_EVERY == 0
    if 2 <= len(rows) < _TEST_EVERY:
        testing[-1] = True
    return rows[~testing], rows[testing]
