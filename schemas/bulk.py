"""Many vectors at once. Records as our own encoder writes them are checked with a few comparisons each, and their numbers
all together; every other record is left to `decode`, which knows what may be wrong. The result is the same, several
times sooner.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from stream_cgzsl.schemas.codec import MAX_BYTES
from stream_cgzsl.schemas.event import VectorEvent
from stream_cgzsl.schemas.layout import LAYOUTS, OCTETS, PREFIX
from stream_cgzsl.schemas.message import Headers
from stream_cgzsl.schemas.roles import ROLES
from stream_cgzsl.schemas.vector import Array

_LONGEST_NAME = 256


class Received(Protocol):
    """What of a record is looked at."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


class Plain(NamedTuple):
    """A record that was read: its key, its id, where its vector stands in `Read.rows`, and its headers after the first two."""

    key: str
    id: str | None
    row: int
    more: Headers


class Read(NamedTuple):
    """One entry a record, in their order; None for those that `decode` must read. `rows` is [rows, numbers] float32."""

    events: list[Plain | None]
    rows: Array


class BulkReader:
    """Reads records of a role whose vectors should have `numbers` numbers, at least `least` each if that is given."""

    def __init__(self, role: str, numbers: int, least: float | None = None) -> None:
        model = ROLES[role].events[0]
        assert issubclass(model, VectorEvent)
        dimension = ("ce_dim", b"%d" % numbers)
        starts = LAYOUTS[model].start_by_dtype.items()
        self._starts = {(*start, dimension): dtype for dtype, start in starts if numbers * dtype.itemsize <= MAX_BYTES}
        self._numbers = numbers
        self._least = least

    def read(self, records: Sequence[Received]) -> Read:
        events: list[Plain | None] = []
        values: list[bytes] = []
        dtype: np.dtype[Any] | None = None  # of this batch: that of its first record
        for record in records:
            headers, value = record.headers, record.value
            found = self._starts.get(headers[:2])
            if dtype is None:
                dtype = found
            if found is None or found is not dtype or not value or len(value) != self._numbers * dtype.itemsize:
                events.append(None)
                continue
            key, more = _name(record.key), headers[2:]
            certain, id = _details(more) if more else (True, None)
            if key is None or not certain:
                events.append(None)
                continue
            events.append(Plain(key, id, len(values), more))
            values.append(value)
        rows = np.frombuffer(b"".join(values), dtype or np.float32).reshape(-1, self._numbers)
        return Read(events, self._checked(events, rows).astype(np.float32, copy=False))

    def _checked(self, events: list[Plain | None], rows: Array) -> Array:
        """Takes back the events whose numbers are not what they should be."""
        if not rows.size:
            return rows
        bad: npt.NDArray[np.bool_] = np.logical_not(np.isfinite(rows).all(axis=1))
        if self._least is not None and not (rows.min() >= self._least):  # also where the least is not a number
            bad |= rows.min(axis=1) < self._least
        if bad.any():
            for place, event in enumerate(events):
                if event is not None and bad[event.row]:
                    events[place] = None
        return rows


def _details(headers: Headers) -> tuple[bool, str | None]:
    """Whether the headers after the first ones are certainly valid, and the id among them."""
    id: str | None = None
    timed = False
    for name, content in headers:
        if name == "ce_id" and id is None:
            id = _name(content)
            if id is None:
                return False, None
        elif name == "ce_time" and not timed:
            timed = _is_time(content)
            if not timed:
                return False, None
        elif name.startswith(PREFIX) or name == OCTETS[0]:
            return False, None
    return True, id


def _name(content: bytes | None) -> str | None:
    """The text, where it certainly is a valid name; None where that takes a closer look."""
    try:
        text = (content or b"").decode()
    except UnicodeDecodeError:
        return None
    return text if 0 < len(text) <= _LONGEST_NAME and text.isprintable() else None


def _is_time(content: bytes) -> bool:
    """Whether it certainly is a moment in UTC."""
    if not content.endswith(b"Z"):
        return False
    try:
        datetime.fromisoformat(content.decode())
    except ValueError:
        return False
    return True
