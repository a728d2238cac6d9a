"""What every event has in common: a type, a version, a key, perhaps a payload of bytes."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from stream_cgzsl.schemas.vector import DTYPES, Vector

Name = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""An identifier a person may read in a log: 1 to 256 characters, none of them a control character."""

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


def _from_base64(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error


Blob = Annotated[
    bytes,
    BeforeValidator(_from_base64),
    PlainSerializer(lambda value: base64.b64encode(value).decode("ascii"), return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "contentEncoding": "base64"}),
]
"""Bytes in Python, base64 in JSON."""


class Part(BaseModel):
    """A piece of an event, or an event: immutable, and without fields the contract does not name."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Event(Part):
    """A record with a meaning.

    On the wire (see codec.py) the field named by `KEY` is the record's key. In binary mode the field named by
    `PAYLOAD` is the value and the other fields are headers; an event without payload is a JSON object in both modes.
    """

    TYPE: ClassVar[str]
    VERSION: ClassVar[int] = 1
    KEY: ClassVar[str | None] = None
    PAYLOAD: ClassVar[str | None] = None

    @classmethod
    def type_name(cls) -> str:
        return f"{cls.TYPE}.v{cls.VERSION}"

    def __eq__(self, other: object) -> bool:
        """Equal types, equal fields; vectors are equal when their dtype and every bit of them is."""
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(mine, other.__dict__[name]) for name, mine in self.__dict__.items())

    __hash__ = None  # type: ignore[assignment]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return bool(a == b)


class VectorEvent(Event):
    """An event whose payload is one vector.

    `id` makes a repeat of the record count once; `time` is when it happened at its source. Both may be missing.
    """

    PAYLOAD: ClassVar[str | None] = "vector"

    vector: Vector
    id: Name | None = None
    time: AwareDatetime | None = None

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """JSON has one field more than the model: the precision the numbers are to be read with."""
        document = handler.resolve_ref_schema(handler(schema))
        document["properties"]["dtype"] = {"enum": list(DTYPES), "default": "float32", "title": "Dtype"}
        return document
