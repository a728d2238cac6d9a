"""A table of vectors, whatever file it came from: the numbers, and the columns of words beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stream_cgzsl.benchmark.datasets.problems import Array, wrong


@dataclass(frozen=True)
class Shape:
    """What a table may hold: columns of words by these names; a column or an array `vectors` of vectors.

    In a table without such a column, all other columns together are the vector. A table with `vectors` empty has none.
    """

    vectors: str
    words: tuple[str, ...]

    def vector_names(self) -> tuple[str, ...]:
        return (self.vectors, "vector")


@dataclass(frozen=True, eq=False)
class Table:
    """`vectors` is [rows, numbers], not checked yet; `columns` hold text or whole numbers."""

    path: Path
    vectors: Array
    columns: Mapping[str, Array] = field(default_factory=dict)

    def column(self, *names: str) -> Array | None:
        """The one column that has one of these names. Raises `UsageError` where there are several."""
        there = [name for name in names if name in self.columns]
        if len(there) > 1:
            raise wrong(self.path, there[1], f"{there[0]!r} beside it, which means the same", "one of them")
        return self.columns[there[0]] if there else None
