"""The layout for your own data: a folder with `features`, `attributes` and, unless `features` has them, `labels`.

docs/data.md describes it. Vectors are rows: `features` has one example per row, `attributes` one class per row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stream_cgzsl.benchmark.datasets.dataset import Dataset, Rows, split_rows
from stream_cgzsl.benchmark.datasets.files import FORMATS, one_of, read_list, read_table
from stream_cgzsl.benchmark.datasets.known import canonical
from stream_cgzsl.benchmark.datasets.problems import check_class_ids, check_matrix, wrong
from stream_cgzsl.benchmark.datasets.table import Shape, Table
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Array

_CLASS = ("label", "labels", "class", "classes", "class_id")
_SPLIT = "split"
_FEATURES = Shape("features", (*_CLASS, _SPLIT))
_ATTRIBUTES = Shape("attributes", _CLASS)


def is_plain(folder: Path) -> bool:
    return any((folder / f"features{suffix}").is_file() for suffix in FORMATS)


def load_plain(folder: Path) -> Dataset:
    """Reads a folder. Raises `UsageError`."""
    path = one_of(folder, "features")
    assert path is not None  # checked by is_plain
    class_ids, attributes = _classes(folder)
    table = read_table(path, _FEATURES)
    vectors = _checked(table, "features", "rows x numbers")
    labels = _labels(folder, table, class_ids, len(vectors))
    train, test = _split(folder, table, labels, len(class_ids))
    unseen = _unseen(folder, class_ids)
    if unseen is not None:
        moved = train[np.isin(labels[train], unseen)]
        train, test = np.setdiff1d(train, moved), np.sort(np.concatenate([test, moved]))
    if not len(train):
        raise UsageError(f"{folder}: there are no training rows: every class is unseen, or every row is a test row")
    learned = np.isin(labels[test], labels[train])
    return Dataset(
        name=canonical(folder.resolve().name),
        class_ids=class_ids,
        attributes=attributes,
        features=vectors,
        labels=labels,
        train=train,
        test_seen=test[learned],
        test_unseen=test[~learned],
        extractor=path.name,
    )


def _checked(table: Table, field: str, what: str) -> Array:
    check_matrix(table.path, field, table.vectors, what)
    return np.ascontiguousarray(table.vectors, np.float32)


def _classes(folder: Path) -> tuple[tuple[str, ...], Array]:
    """The classes and their attributes; classes without names are called 0, 1, 2 and so on."""
    path = one_of(folder, "attributes") or one_of(folder, "classes", (".parquet", ".csv"))
    if path is None:
        choices = ", ".join(f"attributes{suffix}" for suffix in FORMATS)
        raise UsageError(f"{folder}: there is no file of attributes; expected one of {choices}")
    table = read_table(path, _ATTRIBUTES)
    attributes = _checked(table, "attributes", "classes x numbers")
    names, where = table.column(*_CLASS), path
    if names is None and path.stem == "attributes":
        listed = read_list(folder, "classes", _CLASS)
        if listed is not None:
            where, names = listed
    if names is None:
        names = np.arange(len(attributes))
    if len(names) != len(attributes):
        raise wrong(where, "classes", f"{len(names)} classes", f"{len(attributes)}, one per row of {path.name}")
    class_ids = tuple(str(name) for name in names.tolist())
    check_class_ids(where, "classes", class_ids)
    return class_ids, attributes


def _labels(folder: Path, table: Table, class_ids: tuple[str, ...], rows: int) -> Rows:
    """The class of each row. Whole numbers are class indices from 0, unless all classes are named by numbers."""
    stored, where = table.column(*_CLASS), table.path
    if stored is None:
        listed = read_list(folder, "labels", _CLASS)
        if listed is None:
            raise UsageError(
                f"{table.path}: the rows have no labels; expected a column or array called label, or a file "
                "labels.npy, .csv or .txt in the same folder"
            )
        where, stored = listed
    if len(stored) != rows:
        raise wrong(where, "labels", f"{len(stored):,} labels", f"{rows:,}, one per row of {table.path.name}")
    if stored.dtype.kind in "iu" and not all(name.isdecimal() for name in class_ids):
        if stored.min() < 0 or stored.max() >= len(class_ids):
            worst = stored.min() if stored.min() < 0 else stored.max()
            raise wrong(where, "labels", f"{worst}", f"a class index from 0 to {len(class_ids) - 1}, or a class name")
        return stored.astype(np.int64)
    place = {name: number for number, name in enumerate(class_ids)}
    values, inverse = np.unique(stored, return_inverse=True)
    found = np.array([place.get(str(value), -1) for value in values.tolist()], np.int64)[inverse]
    unknown = np.flatnonzero(found < 0)
    if len(unknown):
        name = str(stored[unknown[0]])
        raise wrong(
            where, "labels", f"{name!r} in row {unknown[0]}, a class without attributes", "one of the described classes"
        )
    return found


def _split(folder: Path, table: Table, labels: Rows, classes: int) -> tuple[Rows, Rows]:
    """The training and test rows: as the files say, else every fifth row of each class is for testing."""
    stored, where = table.column(_SPLIT), table.path
    if stored is None:
        listed = read_list(folder, _SPLIT, (_SPLIT,))
        if listed is None:
            parts = [split_rows(np.flatnonzero(labels == label)) for label in range(classes)]
            return (
                np.sort(np.concatenate([train for train, _ in parts])),
                np.sort(np.concatenate([test for _, test in parts])),
            )
        where, stored = listed
    if len(stored) != len(labels):
        raise wrong(where, _SPLIT, f"{len(stored):,} values", f"{len(labels):,}, one per row of {table.path.name}")
    invalid = np.flatnonzero(~np.isin(stored, ("train", "test")))
    if len(invalid):
        raise wrong(where, _SPLIT, f"{str(stored[invalid[0]])!r} in row {invalid[0]}", "train or test")
    return np.flatnonzero(stored == "train"), np.flatnonzero(stored == "test")


def _unseen(folder: Path, class_ids: tuple[str, ...]) -> Rows | None:
    """The classes listed in `unseen`, which have no training rows."""
    listed = read_list(folder, "unseen", _CLASS)
    if listed is None:
        return None
    path, names = listed
    place = {name: number for number, name in enumerate(class_ids)}
    for name in names.tolist():
        if str(name) not in place:
            raise wrong(path, "unseen", repr(str(name)), "one of the described classes")
    return np.array([place[str(name)] for name in names.tolist()], np.int64)
