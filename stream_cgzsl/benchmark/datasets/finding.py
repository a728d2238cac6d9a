"""Finding the folder of a data set, and loading it by its layout."""

from __future__ import annotations

import os
from pathlib import Path

from stream_cgzsl.benchmark.datasets.dataset import Dataset
from stream_cgzsl.benchmark.datasets.plain import is_plain, load_plain
from stream_cgzsl.benchmark.datasets.synthetic import is_synthetic, load_synthetic
from stream_cgzsl.benchmark.datasets.xlsa17 import is_xlsa17, load_xlsa17
from stream_cgzsl.errors import UsageError


def data_folder(given: str | Path | None = None) -> Path:
    """Where data sets are: as given, else CGZSL_DATA, else `../shared/data` next to the repository."""
    chosen = given or os.environ.get("CGZSL_DATA") or Path(__file__).parents[3] / ".." / "shared" / "data"
    return Path(chosen).resolve()


def load(
    data: str | Path, features: str | None = None, splits: str | None = None, under: str | Path | None = None
) -> Dataset:
    """The data set `data`: a folder, the name of a folder in `data_folder(under)`, or `synthetic:...`.

    `features` and `splits` choose between the files of a folder in the benchmarks' layout. Raises `UsageError` for
    files that are missing or do not have the expected contents.
    """
    if is_synthetic(str(data)):
        return load_synthetic(str(data))
    folder = find(data, under)
    if is_xlsa17(folder):
        return load_xlsa17(folder, features, splits)
    if is_plain(folder):
        if features or splits:
            raise UsageError(f"{folder}: --features and --splits are for folders of MATLAB files; this one has none")
        return load_plain(folder)
    found = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
    raise UsageError(
        f"{folder}: found {found}; expected att_splits.mat and a .mat file of features, or features.npy, .npz, "
        ".parquet or .csv with a file of attributes (docs/data.md)"
    )


def find(data: str | Path, under: str | Path | None = None) -> Path:
    """The folder of a data set: that path, or the folder of that name (ignoring case) in `data_folder`."""
    if Path(data).is_dir():
        return Path(data)
    home = data_folder(under)
    if home.is_dir() and Path(data).name == str(data):
        for path in sorted(home.iterdir()):
            if path.is_dir() and path.name.lower() == str(data).lower():
                return path
    raise UsageError(
        f"there is no data set {str(data)!r}: no folder has that path, and none in {home} has that name; "
        "say where data sets are with --data or CGZSL_DATA"
    )
