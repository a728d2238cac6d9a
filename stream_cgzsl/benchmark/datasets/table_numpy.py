"""Tables in NumPy's formats. Pickles are never loaded, because they can run code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from stream_cgzsl.benchmark.datasets.problems import shape_of, wrong
from stream_cgzsl.benchmark.datasets.table import Shape, Table
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Array

_MAGIC = b"\x93NUMPY"


def read_npy(path: Path, _: Shape) -> Table:
    """One array: the vectors. Words are in separate files."""
    return Table(path, _array(path))


def read_npz(path: Path, shape: Shape) -> Table:
    """Arrays by name: the vectors, and columns of words; other arrays are ignored."""
    with _opened(path) as arrays:
        names = [name for name in shape.vector_names() if name in arrays]
        if not names:
            found = ", ".join(arrays) or "nothing"
            raise wrong(path, shape.vectors, f"no such array, but {found}", f"an array called {shape.vectors}")
        words = {name: _words(path, name, _member(path, arrays, name)) for name in shape.words if name in arrays}
        return Table(path, _member(path, arrays, names[0]), words)


def read_words(path: Path) -> Array:
    return _words(path, "its array", _array(path))


def _array(path: Path) -> Array:
    found = _opened(path)
    if not isinstance(found, np.ndarray):
        raise UsageError(f"{path}: an archive of arrays; rename it to .npz")
    return found


def _opened(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except Exception as error:  # numpy raises all kinds of errors for a damaged file
        raise _unreadable(path, error) from error


def _member(path: Path, arrays: Any, name: str) -> Array:
    try:
        return np.asarray(arrays[name])
    except Exception as error:  # as above
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> UsageError:
    if isinstance(error, PermissionError):
        return UsageError(f"{path}: cannot be read: {error}")
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if start != _MAGIC and not start.startswith(b"PK"):
        return UsageError(f"{path}: not a NumPy file (and a pickle is never loaded); save it with np.save or np.savez")
    if "pickle" in str(error):
        return UsageError(
            f"{path}: found Python objects (a pickle), which are never loaded because they can run code; expected "
            "plain numbers or text: save it again with astype(float) or astype(str)"
        )
    return UsageError(f"{path}: a damaged NumPy file: {error}")


def _words(path: Path, field: str, values: Array) -> Array:
    """Text or whole numbers, one per row."""
    if values.ndim == 2 and 1 in values.shape:
        values = values.ravel()
    if values.ndim != 1 or values.dtype.kind not in "iuUS":
        found = f"{values.dtype} of shape {shape_of(values)}"
        raise wrong(path, field, found, "one row of text or whole numbers")
    return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values
