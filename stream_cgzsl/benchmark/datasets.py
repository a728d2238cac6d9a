"""Data sets in the layout of the zero-shot benchmarks (xlsa17): one MATLAB file of features, one of splits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.io import loadmat

from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners.interface import Space

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features with labels, classes with attributes, and which rows train and test. All indices count from 0."""

    name: str
    class_ids: tuple[str, ...]  # column order of the file, which is the order the protocols go by
    attributes: Array  # [classes, attributes] float32
    features: Array  # [rows, features] float32
    labels: Rows  # [rows]
    train: Rows
    test_seen: Rows
    test_unseen: Rows

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

    def vector(self, class_id: str) -> Array:
        """[attributes]"""
        return np.asarray(self.attributes[self._label[class_id]])

    def training(self, class_id: str) -> Array:
        """[rows, features]"""
        return np.asarray(self.features[self._of(self.train, class_id)])

    def test(self, class_id: str) -> Array:
        """[rows, features]; rows of seen and of unseen classes are never mixed in the benchmarks' splits."""
        seen, unseen = self._of(self.test_seen, class_id), self._of(self.test_unseen, class_id)
        return np.asarray(self.features[seen if len(seen) else unseen])

    def _of(self, rows: Rows, class_id: str) -> Rows:
        return np.asarray(rows[self.labels[rows] == self._label[class_id]], np.int64)

    def space(self, seed: int = 0, shared: bool | None = None) -> Space:
        """What a stream of this data would fix: features are signed if any of them is negative."""
        signed = bool((self.features < 0).any())
        return Space(self.attributes.shape[1], self.features.shape[1], signed, shared, seed)


def data_folder(given: str | Path | None = None) -> Path:
    """Where data sets are: as given, or CGZSL_DATA, or `../shared/data` beside the repository."""
    chosen = given or os.environ.get("CGZSL_DATA") or Path(__file__).parents[2] / ".." / "shared" / "data"
    return Path(chosen).resolve()


def load(folder: str | Path, features: str = "res101", splits: str = "att_splits") -> Dataset:
    """Reads `<folder>/<features>.mat` and `<folder>/<splits>.mat`. Raises `UsageError` where they are not there."""
    folder = Path(folder)
    values, split = _read(folder / f"{features}.mat"), _read(folder / f"{splits}.mat")
    return Dataset(
        name=folder.name,
        class_ids=tuple(str(cell.flat[0]) for cell in split["allclasses_names"].flat),
        attributes=np.ascontiguousarray(split["att"].T, dtype=np.float32),
        features=np.ascontiguousarray(values["features"].T, dtype=np.float32),
        labels=_indices(values["labels"]),
        train=_indices(split["trainval_loc"]),
        test_seen=_indices(split["test_seen_loc"]),
        test_unseen=_indices(split["test_unseen_loc"]),
    )


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UsageError(f"there is no {path}; say where the data set is with --data or CGZSL_DATA")
    contents: dict[str, Any] = loadmat(path)
    return contents


def _indices(stored: Array) -> Rows:
    """From 1-based numbers of any type to 0-based int64: some are unsigned and would wrap around at 0."""
    return stored.astype(np.int64).ravel() - 1
