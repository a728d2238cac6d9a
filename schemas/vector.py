"""Vectors of float32 or float16 in pydantic models, validated by numpy."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

Array = npt.NDArray[Any]
"""The package's one alias for an array of any dtype and shape."""

FLOAT32, FLOAT16 = np.dtype("<f4"), np.dtype("<f2")
DTYPES: dict[str, np.dtype[Any]] = {"float32": FLOAT32, "float16": FLOAT16}
"""The number formats on the wire, the default first. Little-endian, in memory too."""


def from_numbers(numbers: Any, dtype: np.dtype[Any] = FLOAT32) -> Array:
    """A vector from a JSON list. A number too large for `dtype` becomes infinite, which the model refuses."""
    if not isinstance(numbers, list) or not numbers or not set(map(type, numbers)) <= {int, float}:
        raise PydanticCustomError("vector", "a non-empty flat list of numbers is expected")
    try:
        return _cast(np.array(numbers, dtype=np.float64), dtype)
    except OverflowError as error:
        raise PydanticCustomError("not_finite", "a number is too large for a float") from error


def _cast(array: Array, dtype: np.dtype[Any]) -> Array:
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def all_finite(array: Array) -> bool:
    """Whether no number is NaN or infinite. Three times as fast as `isfinite(array).all()`."""
    return b"\0" not in np.isfinite(array).tobytes()


def _validate(value: Any) -> Array:
    array: Array = value if isinstance(value, np.ndarray) else from_numbers(value)
    if array.ndim != 1 or not array.size:
        raise PydanticCustomError("vector", "a non-empty array of one dimension is expected")
    if array.dtype is not FLOAT32 and array.dtype not in (FLOAT32, FLOAT16):
        if array.dtype.kind not in "fiu":
            raise PydanticCustomError("vector", "an array of numbers is expected")
        array = _cast(array, FLOAT32)
    if not all_finite(array):
        raise PydanticCustomError("not_finite", "every number must be finite (no NaN, no infinity)")
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


class _VectorSchema:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _validate, serialization=core_schema.plain_serializer_function_ser_schema(np.ndarray.tolist)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "array", "items": {"type": "number"}, "minItems": 1}


Vector = Annotated[Array, _VectorSchema]
"""One-dimensional, read-only, finite, float32 or float16 (other numbers become float32).

An array of one of these two dtypes is not copied: do not change it after it became part of an event.
"""
