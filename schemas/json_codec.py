"""JSON mode: the value is one object with every field, the event's `type` and, for a vector, its `dtype`."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticCustomError, from_json

from stream_cgzsl.schemas.errors import InvalidEvent, shown
from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.layout import Layout
from stream_cgzsl.schemas.vector import DTYPES, from_numbers

SEE_SCHEMA = "See the topic's JSON Schema (stream-cgzsl schemas export)."


def write(layout: Layout, event: Event) -> bytes:
    """The object's bytes. Numbers read back as the same bits."""
    head = b'{"type":"%b"' % layout.model.type_name().encode()
    if layout.is_vector:
        head += b',"dtype":"%b"' % event.__dict__["vector"].dtype.name.encode()
    body = event.__pydantic_serializer__.to_json(event, exclude_none=True)
    return head + b"}" if body == b"{}" else head + b"," + body[1:]


def parse(value: bytes) -> dict[str, Any]:
    """The object in a value. NaN and Infinity, which some JSON writers produce, are left to the model to refuse."""
    try:
        document = from_json(value)
    except ValueError as error:
        raise InvalidEvent(
            "not-json",
            f"the value is not JSON ({error})",
            "a JSON object, or a binary vector with the header ce_dtype",
            "Set ce_dtype to float32 or float16 for a binary vector.",
        ) from error
    if not isinstance(document, dict):
        raise InvalidEvent("not-json", f"the value is {shown(document)} in JSON", "an object", "Send one object.")
    return document


def read_vector(layout: Layout, document: dict[str, Any]) -> None:
    """Replaces the object's list and `dtype` with an array of that dtype."""
    dtype = document.pop("dtype", "float32")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise InvalidEvent("wrong-dtype", f"dtype is {shown(dtype)}", "float32 or float16", "Leave it out for float32.")
    if "vector" not in document:
        return  # the model reports it as missing
    try:
        document["vector"] = from_numbers(document["vector"], DTYPES[dtype])
    except PydanticCustomError as error:
        reason = "not-finite" if error.type == "not_finite" else "invalid-field"
        raise InvalidEvent(
            reason, f"vector: {error.message()}", f"a valid {layout.model.type_name()}", SEE_SCHEMA
        ) from error
