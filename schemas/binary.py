"""Binary mode, in the manner of CloudEvents: the payload is the value, the other fields are headers `ce_<field>`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_cgzsl.schemas.errors import InvalidEvent, shown
from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.layout import OCTETS, Layout
from stream_cgzsl.schemas.message import Headers
from stream_cgzsl.schemas.vector import DTYPES

_DTYPE_OF = {name.encode(): dtype for name, dtype in DTYPES.items()}


def write(layout: Layout, event: Event) -> tuple[bytes, Headers]:
    """The value and the headers of an event that has a payload. A vector is copied once, into the value."""
    fields = event.__dict__
    payload = fields[layout.payload or ""]
    if layout.is_vector:
        headers = [*layout.start_by_dtype[payload.dtype], ("ce_dim", b"%d" % payload.size)]
        payload = payload.tobytes()
    else:
        headers = [*layout.start]
    for header, field, spelling, _ in layout.header_fields:
        content = fields[field]
        if content is not None:
            headers.append((header, spelling.write(content)))
    return payload, tuple(headers)


def is_binary(layout: Layout, given: Mapping[str, bytes]) -> bool:
    """A record is binary when it says so: with `ce_dtype`, or as bytes of a type that has a payload."""
    if given.get("ce_dtype") is not None:
        return True
    return layout.payload is not None and given.get("content-type") == OCTETS[1]


def read(layout: Layout, given: Mapping[str, bytes], value: bytes) -> dict[str, Any]:
    """The fields in a binary record, not checked by the model yet. A vector is a view of `value`."""
    if layout.payload is None:
        raise InvalidEvent(
            "wrong-dtype",
            "the header ce_dtype is set",
            f"a JSON object: {layout.model.type_name()} has no vector",
            "Send JSON, without ce_dtype.",
        )
    document: dict[str, Any] = {layout.payload: _vector(given, value) if layout.is_vector else value}
    for header, field, spelling, _ in layout.header_fields:
        content = given.get(header)
        if content is not None:
            document[field] = spelled(f"the header {header}", spelling.read, content)
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
            "Send the vector's bytes unchanged, or set ce_dtype to what they are.",
        )
    claimed = given.get("ce_dim")
    if claimed is not None and claimed != b"%d" % size:
        raise InvalidEvent(
            "wrong-length",
            f"the value holds {size} numbers and ce_dim is {shown(claimed[:80].decode(errors='replace'))}",
            "the same number of numbers",
            "The record was cut on its way, or ce_dtype or ce_dim is wrong.",
        )
    return np.frombuffer(value, dtype)


def spelled(where: str, read: Any, content: bytes) -> Any:
    """What `read` makes of the bytes of a header or key; its errors become ours."""
    try:
        return read(content)
    except UnicodeDecodeError as error:
        raise InvalidEvent(
            "not-utf8", f"{where} is not UTF-8 (byte {error.start})", "UTF-8 text", "Encode keys and headers as UTF-8."
        ) from error
    except ValueError as error:
        raise InvalidEvent("invalid-field", f"{where}: {error}", "its one spelling", "See docs/events.md.") from error
