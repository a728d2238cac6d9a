"""Records in other formats than ours: a function that the operator names reads them, and gives our events.

What it cannot read is refused like any other invalid record. Which function it is comes from the command line or the
environment, and never from a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from stream_cgzsl.errors import BusUnavailable, CgzslError
from stream_cgzsl.schemas import json_codec
from stream_cgzsl.schemas.codec import MAX_BYTES, build, decode
from stream_cgzsl.schemas.errors import REASONS, STREAM_REASONS, InvalidEvent
from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.layout import LAYOUTS
from stream_cgzsl.schemas.message import Headers
from stream_cgzsl.schemas.roles import ROLES

DECODED_ROLES = ("attributes", "features", "samples", "holdout")
"""The roles whose records may have another format."""


class Decoder(NamedTuple):
    """(key, value, headers) -> an event of the role, or the fields of its default event; and the function's name.

    `read` gets a value that is not empty. It raises `ValueError` for what it cannot read, `OSError` or
    `BusUnavailable` where something it needs cannot be reached, such as a registry.
    """

    name: str
    read: Callable[[bytes | None, bytes, Headers], Event | Mapping[str, Any]]


class Received(Protocol):
    """The parts of a record that are read."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


def decode_with(decoder: Decoder | None, role: str, record: Received) -> Event:
    """The event in a record, read by `decoder`, or by ours without one.

    Empty and oversized values are judged as for our own formats. Raises `InvalidEvent`, and `BusUnavailable` where the
    decoder cannot do its work now: the record is then to be read again later.
    """
    value = record.value
    if decoder is None or not value or len(value) > MAX_BYTES:
        return decode(role, record.key, value, record.headers)
    try:
        found = decoder.read(record.key, value, record.headers)
    except (CgzslError, MemoryError):
        raise
    except OSError as error:
        raise BusUnavailable(f"the decoder {decoder.name} cannot do its work: {error}") from error
    except Exception as error:  # foreign code on foreign bytes: whatever it trips over, the worker goes on
        if isinstance(error, InvalidEvent) and error.reason in (*REASONS, *STREAM_REASONS):
            raise
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        raise _undecodable(decoder, f"{kind}{error}") from error
    return _event(decoder, role, found, record.key)


def _event(decoder: Decoder, role: str, found: object, key: bytes | None) -> Event:
    possible, layout = ROLES[role], LAYOUTS[ROLES[role].events[0]]
    if isinstance(found, Event) and type(found) in (*possible.events, possible.tombstone):
        return found
    if not isinstance(found, Mapping):
        raise _undecodable(decoder, f"it gave a {type(found).__name__} and not a {layout.model.__name__} or a dict")
    fields = {str(name): content for name, content in found.items()}
    if not isinstance(fields.get("vector"), np.ndarray):
        json_codec.read_vector(layout, fields)
    return build(layout, fields, None if layout.key in fields else key)


def _undecodable(decoder: Decoder, found: str) -> InvalidEvent:
    return InvalidEvent("undecodable", found, f"a record that {decoder.name} reads", "Mend the decoder and redrive it.")
