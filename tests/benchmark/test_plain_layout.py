"""One's own data: the same small table in every format, and what is said about files that do not hold it."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from stream_cgzsl.benchmark.datasets import Dataset, load
from stream_cgzsl.errors import UsageError

CLASSES = ["owl", "jay", "auk"]
ATTRIBUTES = np.array([[0, 1], [1, 0], [1, 1]], np.float32)
LABELS = ["owl"] * 5 + ["jay"] * 5 + ["auk"] * 2
VECTORS = np.stack([np.arange(12), np.arange(12) * -0.5, np.ones(12)], axis=1).astype(np.float32)
SPLIT = ["train"] * 4 + ["test"] + ["train"] * 4 + ["test"] + ["test"] * 2


def csv(folder: Path, stem: str, **columns: list[Any]) -> None:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (folder / f"{stem}.csv").write_text("\n".join(lines) + "\n")


def columns(vectors: Any) -> dict[str, list[float]]:
    return {f"x{number}": vectors[:, number].tolist() for number in range(vectors.shape[1])}


# ---- one writer a format


def as_npy(folder: Path) -> None:
    np.save(folder / "features.npy", VECTORS)
    np.save(folder / "labels.npy", np.array(LABELS))
    np.save(folder / "split.npy", np.array(SPLIT))
    np.save(folder / "attributes.npy", ATTRIBUTES)
    (folder / "classes.txt").write_text("owl\njay\n\nauk\n")


def as_npy_with_numbers(folder: Path) -> None:
    """Whole-number labels count the classes from 0; names come from a table."""
    np.save(folder / "features.npy", VECTORS.astype(np.float64))
    np.save(folder / "labels.npy", np.array([CLASSES.index(label) for label in LABELS], np.uint8)[:, None])
    csv(folder, "split", split=SPLIT)
    np.save(folder / "attributes.npy", ATTRIBUTES)
    csv(folder, "classes", class_id=CLASSES, wingspan=["wide", "short", "short"])


def as_npz(folder: Path) -> None:
    np.savez(folder / "features.npz", features=VECTORS, labels=np.array(LABELS), split=np.array(SPLIT).astype("S"))
    np.savez(folder / "attributes.npz", attributes=ATTRIBUTES, classes=np.array(CLASSES))


def as_csv(folder: Path) -> None:
    csv(folder, "features", label=LABELS, **columns(VECTORS), split=SPLIT)
    csv(folder, "attributes", **{"class": CLASSES}, **columns(ATTRIBUTES))


def as_one_table_of_classes(folder: Path) -> None:
    csv(folder, "features", **{"class": [f'"{label}"' for label in LABELS]}, **columns(VECTORS))
    csv(folder, "classes", **{"class": CLASSES}, **columns(ATTRIBUTES))
    (folder / "split.txt").write_text("\n".join(SPLIT))


def as_parquet_of_columns(folder: Path) -> None:
    table = pyarrow.table({"label": LABELS, **columns(VECTORS), "split": SPLIT})
    parquet.write_table(table, folder / "features.parquet")
    parquet.write_table(pyarrow.table({"class": CLASSES, **columns(ATTRIBUTES)}), folder / "attributes.parquet")


def as_parquet_of_lists(folder: Path) -> None:
    """As embeddings are mostly stored; labels as a dictionary, which is what a categorical column becomes."""
    labels = pyarrow.array(LABELS).dictionary_encode()
    vectors = pyarrow.array(VECTORS.tolist(), pyarrow.list_(pyarrow.float32()))
    parquet.write_table(
        pyarrow.table({"class_id": labels, "vector": vectors, "split": SPLIT}), folder / "features.parquet"
    )
    fixed = pyarrow.array(ATTRIBUTES.tolist(), pyarrow.list_(pyarrow.float64(), 2))
    parquet.write_table(pyarrow.table({"class": CLASSES, "attributes": fixed}), folder / "attributes.parquet")


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


# ---- splits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """CSV without a split."""
    csv(tmp_path, "features", label=LABELS, **columns(VECTORS))
    csv(tmp_path, "attributes", **{"class": CLASSES}, **columns(ATTRIBUTES))
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


def test_classes_without_names_are_counted(tmp_path: Path) -> None:
    np.save(tmp_path / "attributes.npy", ATTRIBUTES)
    np.save(tmp_path / "features.npy", VECTORS)
    np.save(tmp_path / "labels.npy", np.array([2, 1] * 6))
    data = load(tmp_path)
    assert (data.class_ids, data.labels.tolist()) == (("0", "1", "2"), [2, 1] * 6)


def test_numbers_are_names_where_classes_are_called_by_numbers(tmp_path: Path) -> None:
    np.savez(tmp_path / "attributes.npz", attributes=ATTRIBUTES, classes=np.array([30, 20, 10]))
    np.savez(tmp_path / "features.npz", features=VECTORS, labels=np.array([10, 20] * 6))
    data = load(tmp_path)
    assert (data.class_ids, data.labels.tolist()) == (("30", "20", "10"), [2, 1] * 6)


@pytest.mark.parametrize("write", [as_npz, as_parquet_of_columns])
def test_attributes_may_be_yes_or_no(tmp_path: Path, write: Any) -> None:
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


# ---- what is refused


def refused(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load(folder)
    return str(caught.value).replace(str(folder), "DIR")


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
    assert refused(folder) == "DIR: found features.npy and features.csv; expected one of them"


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
        "DIR/features.csv: class: found 'label' beside it, which",
    ),
    (
        write_text("features.csv", "colour,a\nred,1\n"),
        "DIR/features.csv: line 2, column 'colour': found 'red'; expected",
    ),
    (
        write_text("features.csv", "a\n1\n"),
        "DIR/features.csv: nothing says which class a row is of; expected a column or",
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
        "DIR/split.txt: split: found 2 values; expected 12, one a row of features",
    ),
    (write_text("split.txt", "train\n" * 11 + "val"), "DIR/split.txt: split: found 'val' in row 11; expected train or"),
    (
        write_text("split.txt", "test\n" * 12),
        "DIR: no row is left to train with: every class is unseen, or every row a",
    ),
    (write_csv("split", part=["train"] * 12), "DIR/split.csv: line 1: found no such column; expected a header with a"),
    (
        write_text("unseen.txt", "owl\nemu\n"),
        "DIR/unseen.txt: unseen: found 'emu'; expected one of the classes described",
    ),
    (write_text("unseen.txt", "owl\njay\nauk\n"), "DIR: no row is left to train with: every class is unseen"),
]


@pytest.mark.parametrize(("spoil", "said"), BROKEN_CSV, ids=[said[:60] for _, said in BROKEN_CSV])
def test_what_is_wrong_with_a_table_is_told(folder: Path, spoil: Any, said: str) -> None:
    spoil(folder)
    assert refused(folder)[: len(said)] == said


@pytest.mark.parametrize("content", [b"\x00\xff\xfe", b'label,a\n"owl,1\n' + b"x" * 200_000], ids=["binary", "endless"])
def test_what_is_no_csv_is_told(folder: Path, content: bytes) -> None:
    (folder / "features.csv").write_bytes(content)
    assert refused(folder).startswith("DIR/features.csv: not a readable CSV file in UTF-8: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_told(folder: Path) -> None:
    (folder / "features.csv").chmod(0)
    assert refused(folder).startswith("DIR/features.csv: not a readable CSV file in UTF-8: [Errno 13]")


# ---- NumPy


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    as_npy(tmp_path)
    return tmp_path


class Bomb:
    """Does what a pickle must never get to do."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("exploded"),)


@pytest.mark.parametrize("stem", ["features", "labels", "attributes", "split"])
def test_a_pickle_is_never_loaded(
    arrays: Path, stem: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    np.save(arrays / f"{stem}.npy", np.array([Bomb()], dtype=object))
    assert refused(arrays).startswith(
        f"DIR/{stem}.npy: found Python objects (a pickle), which are never loaded because"
    )
    assert not Path("exploded").exists()


def test_a_pickle_in_an_archive_is_never_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    as_npz(tmp_path)
    np.savez(tmp_path / "features.npz", features=VECTORS, labels=np.array([Bomb()] * 12, dtype=object))
    assert refused(tmp_path).startswith("DIR/features.npz: found Python objects (a pickle), which are never loaded")
    assert not Path("exploded").exists()


BROKEN_ARRAYS = [
    (
        "labels",
        np.arange(12.0),
        "DIR/labels.npy: its array: found float64 of shape 12; expected one row of text or whole",
    ),
    ("labels", np.array(LABELS[:7]), "DIR/labels.npy: labels: found 7 labels; expected 12, one a row of features.npy"),
    (
        "labels",
        np.full(12, 3),
        "DIR/labels.npy: labels: found 3; expected 0 to 2, the classes there are; or their names",
    ),
    ("labels", np.full(12, -1), "DIR/labels.npy: labels: found -1; expected 0 to 2, the classes there are; or their"),
    (
        "features",
        np.ones(12),
        "DIR/features.npy: features: found an array of shape 12; expected numbers, rows x numbers",
    ),
    ("features", np.array([["a"]]), "DIR/features.npy: features: found values of type <U1; expected numbers, rows x"),
    (
        "attributes",
        np.ones((4, 2)),
        "DIR/classes.txt: classes: found 3 classes; expected 4, one a row of attributes.npy",
    ),
]


@pytest.mark.parametrize(("stem", "array", "said"), BROKEN_ARRAYS, ids=[said[:60] for *_, said in BROKEN_ARRAYS])
def test_what_is_wrong_with_an_array_is_told(arrays: Path, stem: str, array: Any, said: str) -> None:
    np.save(arrays / f"{stem}.npy", array)
    assert refused(arrays)[: len(said)] == said


def test_an_archive_without_the_array_is_told(tmp_path: Path) -> None:
    as_npz(tmp_path)
    np.savez(tmp_path / "features.npz", x=VECTORS, labels=np.array(LABELS))
    assert refused(tmp_path) == (
        "DIR/features.npz: features: found no such array, but x, labels; expected an array called features"
    )


@pytest.mark.parametrize("name", ["features.npy", "features.npz"])
@pytest.mark.parametrize("content", [b"PK\x03\x04 and no more", b"\x93NUMPY\x01\x00v\x00{'descr'"])
def test_a_damaged_array_is_told(tmp_path: Path, name: str, content: bytes) -> None:
    np.save(tmp_path / "attributes.npy", ATTRIBUTES)
    (tmp_path / name).write_bytes(content)
    assert refused(tmp_path).startswith(f"DIR/{name}: a damaged NumPy file: ")


@pytest.mark.parametrize("content", [b"", b"label,a\nowl,1\n", pickle.dumps(Bomb())], ids=["empty", "text", "pickle"])
def test_what_is_no_array_is_told(arrays: Path, content: bytes) -> None:
    (arrays / "features.npy").write_bytes(content)
    assert refused(arrays) == (
        "DIR/features.npy: not a NumPy file (and a pickle is never loaded); save it with np.save or np.savez"
    )


def test_an_archive_called_an_array_is_told(arrays: Path) -> None:
    np.savez(arrays / "features.npz", features=VECTORS)
    (arrays / "features.npz").rename(arrays / "features.npy")
    assert refused(arrays) == "DIR/features.npy: an archive of arrays (.npz); give it that name"


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
def test_what_is_wrong_with_a_parquet_table_is_told(tmp_path: Path, content: dict[str, Any], said: str) -> None:
    as_parquet_of_columns(tmp_path)
    parquet.write_table(pyarrow.table(content), tmp_path / "features.parquet")
    assert refused(tmp_path)[: len(said)] == said


def test_what_is_no_parquet_file_is_told(tmp_path: Path) -> None:
    as_parquet_of_columns(tmp_path)
    (tmp_path / "features.parquet").write_text("label,a\n")
    assert refused(tmp_path).startswith("DIR/features.parquet: not a Parquet file, or a damaged one: ")


def test_without_pyarrow_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_parquet_of_columns(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refused(tmp_path) == (
        "DIR/attributes.parquet: reading Parquet needs pyarrow; install stream-cgzsl[parquet], or save the table as .npz "
        "or .csv"
    )
