"""Finding a file by its name, in any of the supported formats, and reading it."""

from __future__ import annotations

from pathlib import Path

from stream_cgzsl.benchmark.datasets.problems import wrong
from stream_cgzsl.benchmark.datasets.table import Shape, Table
from stream_cgzsl.benchmark.datasets.table_csv import read_csv, read_lines
from stream_cgzsl.benchmark.datasets.table_numpy import read_npy, read_npz, read_words
from stream_cgzsl.benchmark.datasets.table_parquet import read_parquet
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Array

FORMATS = {".npy": read_npy, ".npz": read_npz, ".parquet": read_parquet, ".csv": read_csv}
"""The reader of a table, by file name suffix."""

_LISTS = (".npy", ".csv", ".txt")


def one_of(folder: Path, stem: str, formats: tuple[str, ...] = tuple(FORMATS)) -> Path | None:
    """The file of that name in one of these formats. Raises `UsageError` where there are several."""
    found = [folder / f"{stem}{suffix}" for suffix in formats if (folder / f"{stem}{suffix}").is_file()]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise UsageError(f"{folder}: found {names}; expected only one of them")
    return found[0] if found else None


def read_table(path: Path, shape: Shape) -> Table:
    """Reads a table of any supported format. Raises `UsageError` for a file that cannot be read."""
    return FORMATS[path.suffix](path, shape)


def read_list(folder: Path, stem: str, names: tuple[str, ...]) -> tuple[Path, Array] | None:
    """The words in `stem`.npy, .csv (in a column of `names`) or .txt (one per line); None without such a file."""
    path = one_of(folder, stem, _LISTS)
    if path is None:
        return None
    if path.suffix == ".npy":
        return path, read_words(path)
    if path.suffix == ".txt":
        return path, read_lines(path)
    words = read_csv(path, Shape("", names)).column(*names)
    if words is None:
        raise wrong(path, "line 1", "no such column", f"a header with a column called {' or '.join(names)}")
    return path, words
