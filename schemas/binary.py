"""Binary mode, as in CloudEvents: the payload is the value, the other fields are headers `ce_<field>`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_cgzsl.schemas.errors import InvalidEvent, shown
from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.layout import OCTETS, FieldCodec, Layout
from stream_cgzsl.schemas.message import Headers
from stream_cgzsl.schemas.vector import DTYPES

_DTYPE_OF = {name.encode(): dtype for name, dtype in DTYPES.items()}


def write(layout: Layout, event: Event) -> tuple[bytes, Headers]:
    """The value and headers of an event that has a payload. A vector is copied once, into the value."""
    fields = event.__dict__
    payload = fields[layout.payload or ""]
    if layout.is_vector:
        headers = [*layout.start_by_dtype[payload.dtype], ("ce_dim", b"%d" % payload.size)]
        payload = payload.tobytes()
    else:
        headers = [*layout.start]
    for header, field, codec, _ in layout.header_fields:
        content = fields[field]
        if content is not None:
            headers.append((header, codec.write(content)))
    return payload, tuple(headers)


def is_binary(layout: Layout, given: Mapping[str, bytes]) -> bool:
    """A record is binary if its headers say so: `ce_dtype`, or the content type of bytes where there is a payload."""
    if given.get("ce_dtype") is not None:
        return True
    return layout.payload is not None and given.get("content-type") == OCTETS[1]


def read(layout: Layout, given: Mapping[str, bytes], value: bytes) -> dict[str, Any]:
    """The fields of a binary record, not validated yet. A vector is a view of `value`."""
    if layout.payload is None:
        raise InvalidEvent(
            "wrong-dtype",
            "the header ce_dtype is set",
            f"a JSON object: {layout.model.type_name()} has no vector",
            "Send JSON, without ce_dtype.",
        )
    document: dict[str, Any] = {layout.payload: _vector(given, value) if layout.is_vector else value}
    for header, field, codec, _ in layout.header_fields:
        content = given.get(header)
        if content is not None:
            document[field] = read_field(f"the header {header}", codec, content)
    return document


def _vector(given: Mapping[str, bytes], value: bytes) -> np.ndarray[Any, Any]:
    name = given.get("ce_dtype") or b""
    dtype = _DTYPE_OF.get(name)
    if dtype is None:
        raise InvalidEvent(
            "wrong-dtype",
            f"the header ce_dtype is {shown(name[:80].decode(errors='replace'))}",
            "float32 or float16",
            "Send the vector as little-endian float32.",
        )
    size, rest = divmod(len(value), dtype.itemsize)
    if rest or not size:
        raise InvalidEvent(
            "wrong-length",
            f"the value has {len(value)} bytes",
            f"a whole, positive number of {dtype.itemsize}-byte numbers ({dtype.name})",
            "Send the vector's bytes unchanged, or set ce_dtype to their number format.",
        )
    claimed = given.get("ce_dim")
    if claimed is not None and claimed != b"%d" % size:
        raise InvalidEvent(
            "wrong-length",
            f"the value holds {size} numbers and ce_dim is {shown(claimed[:80].decode(errors='replace'))}",
            "the same number of numbers",
            "The record was truncated, or ce_dtype or ce_dim is wrong.",
        )
    return np.frombuffer(value, dtype)


def read_field(where: str, codec: FieldCodec, content: bytes) -> Any:
    """The content of a header or key. Raises `InvalidEvent`."""
    try:
        return codec.read(content)
    except UnicodeDecodeError as error:
        raise InvalidEvent(
            "not-utf8", f"{where} is not UTF-8 (byte {error.start})", "UTF-8 text", "Encode keys and headers as UTF-8."
        ) from error
    except ValueError as error:
        raise InvalidEvent("invalid-field", f"{where}: {error}", "its canonical form", "See docs/events.md.") from error
