"""What a bus carries: a key, a value and headers, not decoded."""

from __future__ import annotations

from typing import NamedTuple

Headers = tuple[tuple[str, bytes], ...]

UNREADABLE = "cgzsl-unreadable"
"""The header of a record that the bus could not read: it has no key and no value, and the header says why."""


class Message(NamedTuple):
    """A record to write. `timestamp_ms` is the event's own time; without it the bus uses the time of arrival."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None
