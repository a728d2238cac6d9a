"""A table of vectors from a file of any format: a matrix of numbers, and columns of words such as labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stream_cgzsl.benchmark.datasets.problems import wrong
from stream_cgzsl.schemas import Array


@dataclass(frozen=True)
class Shape:
    """What a table may hold: columns of words with these names, and a column or array of vectors called `vectors`.

    In a table without such a column, all other columns together are the vector. An empty `vectors` means no vectors.
    """

    vectors: str
    words: tuple[str, ...]

    def vector_names(self) -> tuple[str, ...]:
        return (self.vectors, "vector")


@dataclass(frozen=True, eq=False)
class Table:
    """`vectors` is [rows, numbers], unchecked; `columns` hold text or whole numbers."""

    path: Path
    vectors: Array
    columns: Mapping[str, Array] = field(default_factory=dict)

    def column(self, *names: str) -> Array | None:
        """The column with one of these names. Raises `UsageError` where there are several."""
        found = [name for name in names if name in self.columns]
        if len(found) > 1:
            raise wrong(self.path, found[1], f"also {found[0]!r}, which means the same", "only one of them")
        return self.columns[found[0]] if found else None
