"""The layout of the zero-shot benchmarks (xlsa17): one MATLAB file of features, one of attributes and splits.

`<features>.mat` has `features` (numbers x rows) and `labels` (1-based). `<splits>.mat` has `att` (attributes x
classes), `allclasses_names`, and the 1-based rows `trainval_loc`, `test_seen_loc` and `test_unseen_loc`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat

from stream_cgzsl.benchmark.datasets.dataset import Dataset, Rows
from stream_cgzsl.benchmark.datasets.known import ATTRIBUTE_SPLITS, canonical, check_known
from stream_cgzsl.benchmark.datasets.problems import check_class_ids, check_matrix, shape_of, wrong
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Array

_SPLITS = "_splits"
_FIRST_CHOICE = "res101"
_LOCATIONS = ("trainval_loc", "test_seen_loc", "test_unseen_loc")


def is_xlsa17(folder: Path) -> bool:
    return any(folder.glob(f"*{_SPLITS}.mat"))


def load_xlsa17(folder: Path, features: str | None = None, splits: str | None = None) -> Dataset:
    """Reads a folder. `features` and `splits` name its files, with or without `.mat`. Raises `UsageError`.

    Defaults: res101 or the only file of features, and att_splits.
    """
    splits = (splits or ATTRIBUTE_SPLITS).removesuffix(".mat")
    feature_path = folder / f"{(features or _only_features(folder)).removesuffix('.mat')}.mat"
    split_path = folder / f"{splits}.mat"
    split = _read(split_path, ("att", "allclasses_names", *_LOCATIONS))
    values = _read(feature_path, ("features", "labels"))
    class_ids = _class_ids(split_path, split)
    labels = _labels(feature_path, values, len(class_ids))
    train, test_seen, test_unseen = (_rows(split_path, name, split, len(labels), feature_path) for name in _LOCATIONS)
    _check_splits(split_path, labels, train, test_seen, test_unseen, class_ids)
    data = Dataset(
        name=canonical(folder.resolve().name),
        class_ids=class_ids,
        attributes=np.ascontiguousarray(split["att"].T, dtype=np.float32),
        features=np.ascontiguousarray(values["features"].T, dtype=np.float32),
        labels=labels,
        train=train,
        test_seen=test_seen,
        test_unseen=test_unseen,
        extractor=feature_path.stem,
    )
    check_known(data, split_path, splits)
    return data


def _only_features(folder: Path) -> str:
    found = sorted(path.stem for path in folder.glob("*.mat") if not path.stem.endswith(_SPLITS))
    if _FIRST_CHOICE in found or not found:
        return _FIRST_CHOICE
    if len(found) > 1:
        raise UsageError(f"{folder}: there are several files of features: choose one with --features {'|'.join(found)}")
    return found[0]


def _read(path: Path, fields: tuple[str, ...]) -> dict[str, Any]:
    if not path.is_file():
        raise UsageError(f"there is no {path}; say where the data set is with --data or CGZSL_DATA")
    try:
        contents: dict[str, Any] = loadmat(path, variable_names=fields)
    except NotImplementedError as error:
        raise UsageError(f"{path}: this is a MATLAB file of version 7.3; save it as version 7 (save -v7)") from error
    except Exception as error:  # scipy raises all kinds of errors for a damaged file
        raise UsageError(f"{path}: not a MATLAB file, or a damaged one: {error}") from error
    for field in fields:
        if field not in contents:
            raise wrong(path, field, "no such variable", f"a file with {', '.join(fields)}")
    return contents


def _class_ids(path: Path, split: dict[str, Any]) -> tuple[str, ...]:
    attributes = split["att"]
    check_matrix(path, "att", attributes, "attributes x classes")
    names = tuple(_text(cell) for cell in split["allclasses_names"].flat)
    if len(names) != attributes.shape[1]:
        raise wrong(path, "allclasses_names", f"{len(names)} names", f"{attributes.shape[1]}, one per column of att")
    check_class_ids(path, "allclasses_names", names)
    return names


def _text(cell: Any) -> str:
    """The text in a cell: usually an array of one string, in files of other tools the string itself."""
    return str(cell) if isinstance(cell, str) else "".join(str(text) for text in np.ravel(cell)[:1])


def _labels(path: Path, values: dict[str, Any], classes: int) -> Rows:
    check_matrix(path, "features", values["features"], "numbers x rows")
    rows = values["features"].shape[1]
    labels = _indices(path, "labels", values["labels"])
    if len(labels) != rows:
        raise wrong(path, "labels", f"{len(labels):,} labels", f"{rows:,}, one per column of features")
    _check_range(path, "labels", labels, classes, "the number of classes")
    return labels


def _rows(path: Path, field: str, split: dict[str, Any], rows: int, features: Path) -> Rows:
    found = _indices(path, field, split[field])
    _check_range(path, field, found, rows, f"the rows of {features.name}")
    if len(np.unique(found)) != len(found):
        raise wrong(path, field, f"{len(found) - len(np.unique(found)):,} rows twice", "every row once")
    return found


def _indices(path: Path, field: str, stored: Array) -> Rows:
    """Converts 1-based numbers of any type to 0-based int64: unsigned ones would wrap around at 0."""
    if stored.size and (stored.dtype.kind not in "fiu" or max(stored.shape) != stored.size):
        raise wrong(path, field, f"{stored.dtype} of shape {shape_of(stored)}", "one row or column of whole numbers")
    with np.errstate(invalid="ignore"):
        whole = stored.astype(np.int64).ravel()
    if (whole != stored.ravel()).any():
        raise wrong(path, field, "numbers that are not whole", "whole numbers from 1")
    return whole - 1


def _check_range(path: Path, field: str, indices: Rows, end: int, what: str) -> None:
    outside = indices[(indices < 0) | (indices >= end)]
    if len(outside):
        raise wrong(path, field, f"{outside[0] + 1} ({len(outside):,} out of range)", f"1 to {end:,}, {what}")


def _check_splits(
    path: Path, labels: Rows, train: Rows, test_seen: Rows, test_unseen: Rows, class_ids: tuple[str, ...]
) -> None:
    if not len(train):
        raise wrong(path, "trainval_loc", "no rows", "the training rows")
    both = np.intersect1d(train, np.concatenate([test_seen, test_unseen]))
    if len(both):
        raise wrong(path, "trainval_loc", f"row {both[0] + 1}, which is also a test row", "only training rows")
    seen = np.unique(labels[train])
    for field, rows, belongs in (("test_seen_loc", test_seen, True), ("test_unseen_loc", test_unseen, False)):
        classes = np.unique(labels[rows])
        invalid = classes[np.isin(classes, seen) != belongs]
        if len(invalid):
            has, wanted = ("no training rows", "with") if belongs else ("training rows", "without")
            raise wrong(
                path, field, f"rows of {class_ids[invalid[0]]!r}, which has {has}", f"classes {wanted} training rows"
            )
