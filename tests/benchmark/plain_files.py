"""The same small table in every plain format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from stream_cgzsl.benchmark.datasets import load
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


def as_npy(folder: Path) -> None:
    np.save(folder / "features.npy", VECTORS)
    np.save(folder / "labels.npy", np.array(LABELS))
    np.save(folder / "split.npy", np.array(SPLIT))
    np.save(folder / "attributes.npy", ATTRIBUTES)
    (folder / "classes.txt").write_text("owl\njay\n\nauk\n")


def as_npy_with_numbers(folder: Path) -> None:
    """Whole-number labels are class indices from 0; names come from a table."""
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
    """As embeddings are usually stored; labels as a dictionary, which is what a categorical column becomes."""
    labels = pyarrow.array(LABELS).dictionary_encode()
    vectors = pyarrow.array(VECTORS.tolist(), pyarrow.list_(pyarrow.float32()))
    parquet.write_table(
        pyarrow.table({"class_id": labels, "vector": vectors, "split": SPLIT}), folder / "features.parquet"
    )
    fixed = pyarrow.array(ATTRIBUTES.tolist(), pyarrow.list_(pyarrow.float64(), 2))
    parquet.write_table(pyarrow.table({"class": CLASSES, "attributes": fixed}), folder / "attributes.parquet")


def as_csv_without_split(folder: Path) -> None:
    csv(folder, "features", label=LABELS, **columns(VECTORS))
    csv(folder, "attributes", **{"class": CLASSES}, **columns(ATTRIBUTES))


def refused(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load(folder)
    return str(caught.value).replace(str(folder), "DIR")
