"""Errors in CSV and Parquet tables of the plain layout."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from plain_files import VECTORS, as_csv_without_split, as_parquet_of_columns, csv, refused
from pyarrow import parquet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    as_csv_without_split(tmp_path)
    return tmp_path


def test_files_that_are_missing_are_named(folder: Path) -> None:
    (folder / "attributes.csv").unlink()
    assert refused(folder) == (
        "DIR: there is no file of attributes; expected one of attributes.npy, attributes.npz, attributes.parquet, "
        "attributes.csv"
    )
    (folder / "features.csv").unlink()
    assert refused(folder).startswith("DIR: found nothing; expected att_splits.mat and a .mat file of features, or")


def test_two_files_for_one_thing_are_refused(folder: Path) -> None:
    np.save(folder / "features.npy", VECTORS)
    assert refused(folder) == "DIR: found features.npy and features.csv; expected only one of them"


def write_text(name: str, text: str) -> Any:
    return lambda folder: (folder / name).write_text(text)


def write_csv(stem: str, **content: list[Any]) -> Any:
    return lambda folder: csv(folder, stem, **content)


BROKEN_CSV = [
    (
        write_text("features.csv", ""),
        "DIR/features.csv: line 1: found nothing; expected a header with the names of the",
    ),
    (write_text("features.csv", "label,a,b\n"), "DIR/features.csv: features: found an array of shape 0 x 2; expected"),
    (write_text("features.csv", "label\nowl\n"), "DIR/features.csv: features: found an array of shape 1 x 0; expected"),
    (
        write_text("features.csv", ",label,a\n0,owl,1\n"),
        "DIR/features.csv: line 1: found column 1 without a name; expected a name for every column",
    ),
    (
        write_text("features.csv", "label,a,a\nowl,1,2\n"),
        "DIR/features.csv: line 1: found the column 'a' twice; expected",
    ),
    (
        write_text("features.csv", "label,a\nowl,1\nowl\n"),
        "DIR/features.csv: line 3: found 1 fields; expected 2, as in",
    ),
    (
        write_text("features.csv", "label,a\nowl,tall\n"),
        "DIR/features.csv: line 2, column 'a': found 'tall'; expected a",
    ),
    (
        write_text("features.csv", "label,a\nowl,\n"),
        "DIR/features.csv: line 2, column 'a': found ''; expected a number",
    ),
    (write_text("features.csv", "label,a\nowl,nan\n"), "DIR/features.csv: features: found nan at [0, 0] (and 0 more"),
    (
        write_text("features.csv", "label,class,a\nowl,owl,1\n"),
        "DIR/features.csv: class: found also 'label', which means",
    ),
    (
        write_text("features.csv", "colour,a\nred,1\n"),
        "DIR/features.csv: line 2, column 'colour': found 'red'; expected",
    ),
    (
        write_text("features.csv", "a\n1\n"),
        "DIR/features.csv: the rows have no labels; expected a column or array called label,",
    ),
    (write_text("features.csv", "label,a\nowl,1\nemu,2\n"), "DIR/features.csv: labels: found 'emu' in row 1, a class"),
    (write_text("attributes.csv", "class,a\nowl,inf\n"), "DIR/attributes.csv: attributes: found inf at [0, 0]"),
    (write_csv("attributes", **{"class": ["owl", "owl"], "a": [1, 2]}), "DIR/attributes.csv: classes: found the class"),
    (
        write_csv("attributes", **{"class": ["owl", ""], "a": [1, 2]}),
        "DIR/attributes.csv: classes: found '' as the name",
    ),
    (
        write_text("split.txt", "train\ntest\n"),
        "DIR/split.txt: split: found 2 values; expected 12, one per row of features",
    ),
    (write_text("split.txt", "train\n" * 11 + "val"), "DIR/split.txt: split: found 'val' in row 11; expected train or"),
    (
        write_text("split.txt", "test\n" * 12),
        "DIR: there are no training rows: every class is unseen, or every row is a",
    ),
    (write_csv("split", part=["train"] * 12), "DIR/split.csv: line 1: found no such column; expected a header with a"),
    (
        write_text("unseen.txt", "owl\nemu\n"),
        "DIR/unseen.txt: unseen: found 'emu'; expected one of the described classes",
    ),
    (write_text("unseen.txt", "owl\njay\nauk\n"), "DIR: there are no training rows: every class is unseen"),
]


@pytest.mark.parametrize(("spoil", "said"), BROKEN_CSV, ids=[said[:60] for _, said in BROKEN_CSV])
def test_an_error_in_a_table_is_reported(folder: Path, spoil: Any, said: str) -> None:
    spoil(folder)
    assert refused(folder)[: len(said)] == said


@pytest.mark.parametrize("content", [b"\x00\xff\xfe", b'label,a\n"owl,1\n' + b"x" * 200_000], ids=["binary", "endless"])
def test_a_file_that_is_not_csv_is_reported(folder: Path, content: bytes) -> None:
    (folder / "features.csv").write_bytes(content)
    assert refused(folder).startswith("DIR/features.csv: not a readable CSV file in UTF-8: ")


def test_a_file_without_read_permission_is_reported(folder: Path) -> None:
    (folder / "features.csv").chmod(0)
    if os.access(folder / "features.csv", os.R_OK):
        pytest.skip("this user may read every file, as root does; setpriv --bounding-set -all takes that from root")
    assert refused(folder).startswith("DIR/features.csv: not a readable CSV file in UTF-8: [Errno 13]")


# ---- Parquet

BROKEN_PARQUET: list[tuple[dict[str, Any], str]] = [
    (
        {"label": ["owl", None], "a": [1, 2]},
        "DIR/features.parquet: label: found 1 empty cells; expected a value in every",
    ),
    (
        {"label": ["owl"], "colour": ["red"]},
        "DIR/features.parquet: colour: found a column of string; expected numbers, or",
    ),
    (
        {"label": [1.5], "a": [1]},
        "DIR/features.parquet: label: found a column of double; expected text or whole numbers",
    ),
    (
        {"label": ["owl"], "vector": ["1 2 3"]},
        "DIR/features.parquet: vector: found a column of string; expected lists of",
    ),
    (
        {"label": ["owl"], "vector": [["a"]]},
        "DIR/features.parquet: vector: found lists of string; expected lists of num",
    ),
    (
        {"label": ["owl"] * 2, "vector": [[1], [1, 2]]},
        "DIR/features.parquet: vector: found lists of 1 and of 2 numbers",
    ),
    (
        {"label": ["owl"], "vector": [[1, None]]},
        "DIR/features.parquet: vector: found 1 empty numbers; expected numbers",
    ),
    ({"label": ["owl"]}, "DIR/features.parquet: features: found an array of shape 1 x 0; expected numbers"),
]


@pytest.mark.parametrize(("content", "said"), BROKEN_PARQUET, ids=[said[:60] for _, said in BROKEN_PARQUET])
def test_an_error_in_a_parquet_table_is_reported(tmp_path: Path, content: dict[str, Any], said: str) -> None:
    as_parquet_of_columns(tmp_path)
    parquet.write_table(pyarrow.table(content), tmp_path / "features.parquet")
    assert refused(tmp_path)[: len(said)] == said


def test_a_file_that_is_not_parquet_is_reported(tmp_path: Path) -> None:
    as_parquet_of_columns(tmp_path)
    (tmp_path / "features.parquet").write_text("label,a\n")
    assert refused(tmp_path).startswith("DIR/features.parquet: not a Parquet file, or a damaged one: ")


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_parquet_of_columns(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refused(tmp_path) == (
        "DIR/attributes.parquet: reading Parquet needs pyarrow; install stream-cgzsl[parquet], or save the table as "
        ".npz or .csv"
    )
