"""Tables in Parquet, which need pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from stream_cgzsl.benchmark.datasets.problems import wrong
from stream_cgzsl.benchmark.datasets.table import Shape, Table
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Array


def read_parquet(path: Path, shape: Shape) -> Table:
    """Columns of words are found by name; the vector is a column of lists, or all other columns in their order."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            f"{path}: reading Parquet needs pyarrow; install stream-cgzsl[parquet], or save the table as .npz or .csv"
        ) from error
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise UsageError(f"{path}: not a Parquet file, or a damaged one: {error}") from error
    for name in table.column_names:
        if table[name].null_count:
            raise wrong(path, name, f"{table[name].null_count:,} empty cells", "a value in every row")
    words = {name: _words(path, name, table[name]) for name in shape.words if name in table.column_names}
    lists = [name for name in shape.vector_names() if name in table.column_names]
    if lists:
        return Table(path, _vectors(path, lists[0], table[lists[0]]), words)
    numeric = [name for name in table.column_names if name not in words]
    for name in numeric:
        if not _is_number(table[name].type):
            raise wrong(
                path, name, f"a column of {table[name].type}", f"numbers, or one column of lists called {shape.vectors}"
            )
    if not numeric:
        return Table(path, np.zeros((table.num_rows, 0)), words)
    return Table(path, np.column_stack([table[name].to_numpy() for name in numeric]), words)


def _vectors(path: Path, name: str, column: Any) -> Array:
    import pyarrow.compute as compute
    from pyarrow import types

    kind = column.type
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        raise wrong(path, name, f"a column of {kind}", "lists of numbers")
    if not _is_number(kind.value_type):
        raise wrong(path, name, f"lists of {kind.value_type}", "lists of numbers")
    lengths = np.unique(compute.list_value_length(column).to_numpy())
    if len(lengths) > 1:
        raise wrong(path, name, f"lists of {lengths[0]} and of {lengths[-1]} numbers", "lists of one length")
    flat = compute.list_flatten(column)
    if flat.null_count:
        raise wrong(path, name, f"{flat.null_count:,} empty numbers", "numbers")
    return np.asarray(flat.to_numpy().reshape(len(column), -1) if len(column) else np.zeros((0, 0)))


def _words(path: Path, name: str, column: Any) -> Array:
    words = np.array(column.to_pylist()) if len(column) else np.zeros(0, str)
    if words.ndim != 1 or words.dtype.kind not in "iuU":
        raise wrong(path, name, f"a column of {column.type}", "text or whole numbers")
    return words


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))
