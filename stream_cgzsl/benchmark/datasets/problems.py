"""Errors in the files of a data set, in one line: the file, the field, what was found and what was expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Array
from stream_cgzsl.schemas.fields import Name

_NAME: TypeAdapter[str] = TypeAdapter(Name)


def wrong(path: Path, field: str, found: str, expected: str) -> UsageError:
    return UsageError(f"{path}: {field}: found {found}; expected {expected}")


def check_matrix(path: Path, field: str, values: Array, what: str) -> None:
    """Raises `UsageError` unless `values` is a non-empty matrix of finite numbers; `what` describes its shape."""
    if values.ndim != 2 or 0 in values.shape:
        raise wrong(path, field, f"an array of shape {shape_of(values)}", f"numbers, {what}")
    if values.dtype.kind not in "fiub":
        raise wrong(path, field, f"values of type {values.dtype}", f"numbers, {what}")
    with np.errstate(over="ignore"):
        finite = np.isfinite(values.astype(np.float32, copy=False))
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise wrong(
            path,
            field,
            f"{values[row, column]} at [{row}, {column}] (and {(~finite).sum() - 1:,} more like it)",
            "finite numbers in the range of a float32",
        )


def check_class_ids(path: Path, field: str, class_ids: Sequence[str]) -> None:
    """Raises `UsageError` unless the names are distinct and can be keys of records."""
    twice = [name for name, count in Counter(class_ids).items() if count > 1]
    if twice:
        raise wrong(path, field, f"the class {twice[0]!r} twice", "every class once")
    for number, name in enumerate(class_ids):
        try:
            _NAME.validate_python(name)
        except ValidationError as error:
            raise wrong(
                path, field, f"{name[:60]!r} as the name of class {number}", "1 to 256 characters on one line"
            ) from error


def shape_of(values: Array) -> str:
    return " x ".join(str(size) for size in values.shape) or "a single value"
