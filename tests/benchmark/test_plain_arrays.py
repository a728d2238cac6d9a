"""Errors in NumPy files of the plain layout; no pickle is ever loaded."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_files import ATTRIBUTES, LABELS, VECTORS, as_npy, as_npz, refused


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    as_npy(tmp_path)
    return tmp_path


class Bomb:
    """Runs code when it is unpickled."""

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
    (
        "labels",
        np.array(LABELS[:7]),
        "DIR/labels.npy: labels: found 7 labels; expected 12, one per row of features.npy",
    ),
    ("labels", np.full(12, 3), "DIR/labels.npy: labels: found 3; expected a class index from 0 to 2, or a class name"),
    (
        "labels",
        np.full(12, -1),
        "DIR/labels.npy: labels: found -1; expected a class index from 0 to 2, or a class name",
    ),
    (
        "features",
        np.ones(12),
        "DIR/features.npy: features: found an array of shape 12; expected numbers, rows x numbers",
    ),
    ("features", np.array([["a"]]), "DIR/features.npy: features: found values of type <U1; expected numbers, rows x"),
    (
        "attributes",
        np.ones((4, 2)),
        "DIR/classes.txt: classes: found 3 classes; expected 4, one per row of attributes.npy",
    ),
]


@pytest.mark.parametrize(("stem", "array", "said"), BROKEN_ARRAYS, ids=[said[:60] for *_, said in BROKEN_ARRAYS])
def test_an_error_in_an_array_is_reported(arrays: Path, stem: str, array: Any, said: str) -> None:
    np.save(arrays / f"{stem}.npy", array)
    assert refused(arrays)[: len(said)] == said


def test_an_archive_without_the_array_is_reported(tmp_path: Path) -> None:
    as_npz(tmp_path)
    np.savez(tmp_path / "features.npz", x=VECTORS, labels=np.array(LABELS))
    assert refused(tmp_path) == (
        "DIR/features.npz: features: found no such array, but x, labels; expected an array called features"
    )


@pytest.mark.parametrize("name", ["features.npy", "features.npz"])
@pytest.mark.parametrize("content", [b"PK\x03\x04 and no more", b"\x93NUMPY\x01\x00v\x00{'descr'"])
def test_a_damaged_array_is_reported(tmp_path: Path, name: str, content: bytes) -> None:
    np.save(tmp_path / "attributes.npy", ATTRIBUTES)
    (tmp_path / name).write_bytes(content)
    assert refused(tmp_path).startswith(f"DIR/{name}: a damaged NumPy file: ")


@pytest.mark.parametrize("content", [b"", b"label,a\nowl,1\n", pickle.dumps(Bomb())], ids=["empty", "text", "pickle"])
def test_a_file_that_is_not_an_array_is_reported(arrays: Path, content: bytes) -> None:
    (arrays / "features.npy").write_bytes(content)
    assert refused(arrays) == (
        "DIR/features.npy: not a NumPy file (and a pickle is never loaded); save it with np.save or np.savez"
    )


def test_an_archive_with_the_suffix_of_an_array_is_reported(arrays: Path) -> None:
    np.savez(arrays / "features.npz", features=VECTORS)
    (arrays / "features.npz").rename(arrays / "features.npy")
    assert refused(arrays) == "DIR/features.npy: an archive of arrays; rename it to .npz"
