"""The plain layout: every format gives the same data, and the same split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from plain_files import (
    ATTRIBUTES,
    CLASSES,
    LABELS,
    VECTORS,
    as_csv,
    as_csv_without_split,
    as_npy,
    as_npy_with_numbers,
    as_npz,
    as_one_table_of_classes,
    as_parquet_of_columns,
    as_parquet_of_lists,
    columns,
    csv,
)
from pyarrow import parquet

from stream_cgzsl.benchmark.datasets import Dataset, load

WRITERS = [
    as_npy,
    as_npy_with_numbers,
    as_npz,
    as_csv,
    as_one_table_of_classes,
    as_parquet_of_columns,
    as_parquet_of_lists,
]


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_gives_the_same_data(tmp_path: Path, write: Any) -> None:
    write(tmp_path)
    data = load(tmp_path)
    assert (data.class_ids, data.labels.tolist()) == (tuple(CLASSES), [CLASSES.index(label) for label in LABELS])
    assert (data.features.tobytes(), data.attributes.tobytes()) == (VECTORS.tobytes(), ATTRIBUTES.tobytes())
    assert (data.train.tolist(), data.test_seen.tolist(), data.test_unseen.tolist()) == (
        [0, 1, 2, 3, 5, 6, 7, 8],
        [4, 9],
        [10, 11],
    )
    assert data.name == tmp_path.name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    as_csv_without_split(tmp_path)
    return tmp_path


def rows_of(data: Dataset) -> tuple[list[int], list[int], list[int]]:
    return data.train.tolist(), data.test_seen.tolist(), data.test_unseen.tolist()


def test_without_a_split_every_fifth_row_of_a_class_tests(folder: Path) -> None:
    assert rows_of(load(folder)) == ([0, 1, 2, 3, 5, 6, 7, 8, 10], [4, 9, 11], [])


def test_no_row_of_a_class_named_unseen_is_trained_on(folder: Path) -> None:
    (folder / "unseen.txt").write_text("jay\n")
    assert rows_of(load(folder)) == ([0, 1, 2, 3, 10], [4, 11], [5, 6, 7, 8, 9])


def test_a_class_without_rows_is_in_neither_pool(folder: Path) -> None:
    csv(folder, "attributes", **{"class": [*CLASSES, "emu"]}, a=[1, 2, 3, 4])
    data = load(folder)
    assert (data.class_ids[3], data.seen_pool, data.unseen_pool) == ("emu", tuple(CLASSES), ())


def test_classes_without_names_are_numbered(tmp_path: Path) -> None:
    np.save(tmp_path / "attributes.npy", ATTRIBUTES)
    np.save(tmp_path / "features.npy", VECTORS)
    np.save(tmp_path / "labels.npy", np.array([2, 1] * 6))
    data = load(tmp_path)
    assert (data.class_ids, data.labels.tolist()) == (("0", "1", "2"), [2, 1] * 6)


def test_numbers_are_names_where_classes_are_named_by_numbers(tmp_path: Path) -> None:
    np.savez(tmp_path / "attributes.npz", attributes=ATTRIBUTES, classes=np.array([30, 20, 10]))
    np.savez(tmp_path / "features.npz", features=VECTORS, labels=np.array([10, 20] * 6))
    data = load(tmp_path)
    assert (data.class_ids, data.labels.tolist()) == (("30", "20", "10"), [2, 1] * 6)


@pytest.mark.parametrize("write", [as_npz, as_parquet_of_columns])
def test_attributes_may_be_booleans(tmp_path: Path, write: Any) -> None:
    write(tmp_path)
    if write is as_npz:
        np.savez(tmp_path / "attributes.npz", attributes=ATTRIBUTES.astype(bool), classes=np.array(CLASSES))
    else:
        flags = {name: [bool(value) for value in values] for name, values in columns(ATTRIBUTES).items()}
        parquet.write_table(pyarrow.table({"class": CLASSES, **flags}), tmp_path / "attributes.parquet")
    assert load(tmp_path).attributes.tobytes() == ATTRIBUTES.tobytes()


def test_a_file_from_a_spreadsheet_is_read(folder: Path) -> None:
    text = (folder / "features.csv").read_text()
    (folder / "features.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\r\n")
    assert load(folder).features.tobytes() == VECTORS.tobytes()
