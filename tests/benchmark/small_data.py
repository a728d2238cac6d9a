"""Small data sets for tests, in memory and as folders of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat, savemat

from stream_cgzsl.benchmark.datasets import Dataset, data_folder
from stream_cgzsl.benchmark.datasets.known import KNOWN, canonical
from stream_cgzsl.benchmark.datasets.xlsa17 import load_xlsa17

FEATURES = {
    "features": np.stack([np.arange(1.0, 10.0), -np.arange(1.0, 10.0)]),
    "labels": np.array([[1, 1, 1, 2, 2, 2, 3, 3, 3]]),
}
"""Nine rows of two features; row k (from 1) holds [k, -k]."""


def cells(*names: str) -> Any:
    """A list of strings as MATLAB stores it."""
    stored = np.empty((len(names), 1), dtype=object)
    stored[:, 0] = names
    return stored


SPLITS = {
    "att": np.arange(12.0).reshape(4, 3),
    "allclasses_names": cells("owl", "jay", "auk"),
    "trainval_loc": np.array([[1], [2], [4]], np.uint16),
    "test_seen_loc": np.array([[3], [5], [6]], np.uint16),
    "test_unseen_loc": np.array([[7], [8], [9]], np.uint16),
}
"""Three classes; the types of the indices are those of the benchmarks' files."""


def matlab_folder(folder: Path, features: dict[str, Any] | None = None, splits: dict[str, Any] | None = None) -> Path:
    """The small data set in the benchmarks' layout. Given fields replace those above; None removes a field."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, fields, given in (("res101", FEATURES, features), ("att_splits", SPLITS, splits)):
        contents = {**fields, **(given or {})}
        savemat(folder / f"{name}.mat", {field: value for field, value in contents.items() if value is not None})
    return folder


def known_folder(home: Path, name: str, **changed: int) -> Path:
    """A folder with the name of a benchmark: one training and one test row per class; `changed` replaces its sizes."""
    known = KNOWN[canonical(name)]
    sizes = {"classes": known.classes, "attributes": known.attributes, "seen": known.seen, **changed}
    classes, seen = sizes["classes"], sizes["seen"]
    labels = np.concatenate([np.arange(classes), np.arange(classes)]) + 1
    rows = np.arange(1, 2 * classes + 1)
    learned = labels <= seen
    return matlab_folder(
        home / name,
        {"features": np.ones((3, 2 * classes)), "labels": labels[None]},
        {
            "att": np.ones((sizes["attributes"], classes)),
            "allclasses_names": cells(*(f"class {number}" for number in range(classes))),
            "trainval_loc": rows[learned & (rows <= classes)],
            "test_seen_loc": rows[learned & (rows > classes)],
            "test_unseen_loc": rows[~learned],
        },
    )


def data(seen: int, unseen: int, name: str = "SMALL") -> Dataset:
    """Two training rows and one test row per seen class, five test rows per unseen class."""
    classes = seen + unseen
    labels = np.concatenate([np.repeat(np.arange(seen), 3), np.repeat(np.arange(seen, classes), 5)])
    rows = np.arange(len(labels))
    of_seen = rows < 3 * seen
    return Dataset(
        name=name,
        class_ids=tuple(f"{'s' if i < seen else 'u'}{i:03}" for i in range(classes)),
        attributes=np.eye(classes, dtype=np.float32),
        features=np.stack([rows, rows % 7], axis=1).astype(np.float32),
        labels=labels,
        train=rows[of_seen & (rows % 3 != 2)],
        test_seen=rows[of_seen & (rows % 3 == 2)],
        test_unseen=rows[~of_seen],
    )


def with_official_splits(folder: str, into: Path) -> Dataset:
    """A benchmark with its real splits from the data folder, and features of one number for every row.

    The splits do not contain labels: they are assigned to the rows of each part in turn.
    """
    known = KNOWN[canonical(folder)]
    place = into / folder
    place.mkdir()
    (place / "att_splits.mat").symlink_to(data_folder() / folder / "att_splits.mat")
    split = loadmat(place / "att_splits.mat")
    labels = np.ones((1, known.images), np.int64)
    order = np.arange(1, known.classes + 1)
    for field, classes in (
        ("trainval_loc", order[: known.seen]),
        ("test_seen_loc", order[: known.seen]),
        ("test_unseen_loc", order[known.seen :]),
    ):
        rows = split[field].astype(np.int64).ravel() - 1
        labels[0, rows] = classes[np.arange(len(rows)) % len(classes)]
    savemat(place / "res101.mat", {"features": np.ones((1, known.images), np.float32), "labels": labels})
    return load_xlsa17(place)
