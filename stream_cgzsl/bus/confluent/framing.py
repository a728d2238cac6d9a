"""The five bytes before the payload of a record whose schema is in a registry."""

from __future__ import annotations

_BYTES = 5


def unframe(value: bytes) -> tuple[int, bytes]:
    """The id of the schema, and what it describes. Raises `ValueError` for a value that is not framed."""
    if len(value) < _BYTES or value[0] != 0:
        raise ValueError(
            f"the value begins with {value[:_BYTES].hex() or 'nothing'}, and not with 00 and a schema's id"
        )
    return int.from_bytes(value[1:_BYTES], "big"), value[_BYTES:]
