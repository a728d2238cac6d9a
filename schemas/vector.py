"""Vectors of float32 or float16 inside pydantic models, checked by numpy all at once."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from stream_cgzsl.schemas.errors import InvalidEvent

DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2")}


def from_bytes(value: bytes, dtype_name: str) -> npt.NDArray[Any]:
    """A read-only view of `value` as little-endian numbers; copies nothing."""
    dtype = DTYPES.get(dtype_name)
    if dtype is None:
        raise InvalidEvent(
            "wrong-dtype",
            f"the header ce_dtype is {dtype_name[:40]!r}",
            "float32 or float16",
            "Encode the vector as little-endian float32.",
        )
    if not value or len(value) % dtype.itemsize:
        raise InvalidEvent(
            "wrong-length",
            f"the value has {len(value)} bytes",
            f"a whole, positive number of {dtype.itemsize}-byte numbers ({dtype_name})",
            "Send the vector's bytes unchanged, or set ce_dtype to what they are.",
        )
    return np.frombuffer(value, dtype=dtype)


def from_numbers(numbers: Any, dtype_name: str = "float32") -> npt.NDArray[Any]:
    """A vector of `dtype_name` from a JSON list; a number that is not finite in that type is refused later."""
    if not isinstance(numbers, list) or not numbers or not {type(n) for n in numbers} <= {int, float}:
        raise PydanticCustomError("vector", "a non-empty flat list of numbers is expected")
    try:
        with np.errstate(over="ignore"):
            return np.asarray(numbers, dtype=np.float64).astype(DTYPES[dtype_name])
    except OverflowError as error:
        raise PydanticCustomError("vector", "a number is too large for a float") from error


def _validate(value: Any) -> npt.NDArray[Any]:
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or not value.size:
            raise PydanticCustomError("vector", "a non-empty array of one dimension is expected")
        if value.dtype not in (np.float32, np.float16):
            with np.errstate(over="ignore"):
                value = value.astype(np.float32)
    else:
        value = from_numbers(value)
    if not np.isfinite(value).all():
        raise PydanticCustomError("not_finite", "every number must be finite (no NaN, no infinity)")
    if value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value  # type: ignore[no-any-return]


class _VectorSchema:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _validate,
            serialization=core_schema.plain_serializer_function_ser_schema(np.ndarray.tolist),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "array", "items": {"type": "number"}, "minItems": 1}


Vector = Annotated[npt.NDArray[Any], _VectorSchema]
"""One-dimensional, read-only, finite, float32 or float16 (anything else becomes float32)."""
