"""Tables as text: CSV with a header, and lists with one word per line."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import TextIO

import numpy as np

from stream_cgzsl.benchmark.datasets.problems import wrong
from stream_cgzsl.benchmark.datasets.table import Shape, Table
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Array


def read_csv(path: Path, shape: Shape) -> Table:
    """Columns of words are found by their names in the header; all other columns are numbers and form the vector."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read(path, file, shape)
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path}: not a readable CSV file in UTF-8: {error}") from error


def _read(path: Path, file: TextIO, shape: Shape) -> Table:
    lines = csv.reader(file)
    header = [name.strip() for name in next(lines, [])]
    if not any(header):
        raise wrong(path, "line 1", "nothing", "a header with the names of the columns")
    if "" in header:  # such as a data frame's index, which would become part of every vector
        raise wrong(path, "line 1", f"column {header.index('') + 1} without a name", "a name for every column")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise wrong(path, "line 1", f"the column {twice[0]!r} twice", "every column once")
    words: dict[int, list[str]] = {number: [] for number, name in enumerate(header) if name in shape.words}
    numeric = [number for number in range(len(header)) if number not in words]
    vectors: list[Array] = []
    for row in lines:
        if not row:
            continue
        if len(row) != len(header):
            raise wrong(path, f"line {lines.line_num}", f"{len(row)} fields", f"{len(header)}, as in the header")
        for number, values in words.items():
            values.append(row[number].strip())
        if shape.vectors:
            vectors.append(_numbers(path, lines.line_num, header, numeric, row))
    columns = {header[number]: np.array(values, str) for number, values in words.items()}
    return Table(path, np.array(vectors, np.float32).reshape(len(vectors), len(numeric)), columns)


def _numbers(path: Path, line: int, header: list[str], numeric: list[int], row: list[str]) -> Array:
    try:
        return np.array([row[number] for number in numeric], np.float32)
    except ValueError as error:
        number = next(number for number in numeric if not _is_number(row[number]))
        raise wrong(path, f"line {line}, column {header[number]!r}", repr(row[number][:60]), "a number") from error


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_lines(path: Path) -> Array:
    """One word per line; empty lines are skipped."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path}: not a readable text file in UTF-8: {error}") from error
    return np.array([line.strip() for line in lines if line.strip()], str)
