"""What travels on a bus: a key, a value and headers, before anyone has given them a meaning."""

from __future__ import annotations

from typing import NamedTuple

Headers = tuple[tuple[str, bytes], ...]


class Message(NamedTuple):
    """A record to be written. `timestamp_ms` is the event's own time; without one the bus stamps its arrival."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None
