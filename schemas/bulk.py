"""Many vectors at once.

Records as our own encoder writes them are checked with a few comparisons each, and their numbers all together. Every
other record goes through `decode`, which says what is wrong with it. The result is the same, several times sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stream_cgzsl.schemas.codec import MAX_BYTES
from stream_cgzsl.schemas.errors import InvalidEvent
from stream_cgzsl.schemas.event import VectorEvent
from stream_cgzsl.schemas.foreign import Decoder, Received, decode_with
from stream_cgzsl.schemas.layout import LAYOUTS, OCTETS, PREFIX
from stream_cgzsl.schemas.message import Headers
from stream_cgzsl.schemas.roles import ROLES
from stream_cgzsl.schemas.vector import Array

_LONGEST_NAME = 256
_MOST_NAMES = 4096


class VectorRow(NamedTuple):
    """One event: its key, its id, the index of its vector in `Batch.rows`, and its headers after the first two."""

    key: str
    id: str | None
    row: int
    more: Headers


class Batch(NamedTuple):
    """The events of some records.

    `events` has one entry per record, in their order: None for a record that is not a valid event. `refused` says why
    not, by the record's index, in order. `rows` [valid events, numbers] float32 has the others' vectors, in order.
    `decoded` counts the records that could not be read in bulk. If it is 0, every event's key is its record's key.
    """

    events: list[VectorRow | None]
    rows: Array
    refused: Mapping[int, InvalidEvent] = {}
    decoded: int = 0


class BulkReader:
    """Reads records of a role whose vectors have `numbers` numbers, each at least `least` if that is given.

    `check` raises `InvalidEvent`, with a message, for any event whose vector is not like that. Without `numbers`,
    vectors of any length are valid, and `rows` is [valid events, 0]. With a `decoder` every record goes through it.
    """

    def __init__(
        self,
        role: str,
        numbers: int | None,
        least: float | None = None,
        check: Callable[[VectorEvent], None] = lambda _: None,
        decoder: Decoder | None = None,
    ) -> None:
        model = ROLES[role].events[0]
        assert issubclass(model, VectorEvent)
        self._role = role
        self._key = model.KEY or ""
        self._numbers = numbers or 0
        self._least = least
        self._check = check
        self._decoder = decoder
        self._names = _name if self._key == "request_id" else lru_cache(_MOST_NAMES)(_name)  # classes come again
        dimension = ("ce_dim", b"%d" % self._numbers)
        starts = LAYOUTS[model].start_by_dtype.items() if numbers and decoder is None else ()
        self._starts = {
            (*start, dimension): dtype for dtype, start in starts if dtype.itemsize * self._numbers <= MAX_BYTES
        }

    def read_all(self, records: Sequence[Received]) -> Batch:
        """Every record: read in bulk where possible, else decoded alone. To go through the result in order:

        errors = iter(batch.refused.values())
        for record, event in zip(records, batch.events, strict=True):
            if event is None:
                ...  # dead_letter(record, next(errors))
            else:
                ...  # event.key, event.id, batch.rows[event.row]
        """
        events, rows, left = self._read_bulk(records)
        if not left:
            return Batch(events, rows)
        refused: dict[int, InvalidEvent] = {}
        vectors: list[Array] = []
        for index, (record, event) in enumerate(zip(records, events, strict=True)):
            if event is not None:
                events[index] = event._replace(row=len(vectors))
                vectors.append(rows[event.row])
                continue
            try:
                decoded = decode_with(self._decoder, self._role, record)
                assert isinstance(decoded, VectorEvent)
                self._check(decoded)
            except InvalidEvent as error:
                refused[index] = error
                continue
            events[index] = VectorRow(getattr(decoded, self._key), decoded.id, len(vectors), record.headers)
            vectors.append(decoded.vector)
        if not self._numbers:
            rows = np.empty((len(vectors), 0), np.float32)
        elif len(rows) != len(vectors) or len(refused) != left:
            rows = np.array(vectors, np.float32).reshape(-1, self._numbers)
        return Batch(events, rows, refused, left)

    def _read_bulk(self, records: Sequence[Received]) -> tuple[list[VectorRow | None], Array, int]:
        """The events and rows that can be read in bulk, and how many records (None among the events) are left."""
        events: list[VectorRow | None] = []
        values: list[bytes] = []
        names = self._names
        dtype: np.dtype[Any] | None = None  # one per batch: that of its first record
        for record in records:
            headers, value = record.headers, record.value
            found = self._starts.get(headers[:2])
            if dtype is None:
                dtype = found
            if found is None or found is not dtype or not value or len(value) != self._numbers * dtype.itemsize:
                events.append(None)
                continue
            key, more = names(record.key), headers[2:]
            certain, id = _details(more) if more else (True, None)
            if key is None or not certain:
                events.append(None)
                continue
            events.append(VectorRow(key, id, len(values), more))
            values.append(value)
        rows = np.frombuffer(b"".join(values), dtype or np.float32).reshape(-1, self._numbers or 1)
        left = len(records) - len(values) + self._take_back(events, rows)
        return events, rows.astype(np.float32, copy=False), left

    def _take_back(self, events: list[VectorRow | None], rows: Array) -> int:
        """Removes the events whose numbers are not valid, and counts them."""
        least = -np.inf if self._least is None else self._least
        if not rows.size or (least <= rows.min() > -np.inf and rows.max() < np.inf):  # each false if there is a NaN
            return 0
        bad: npt.NDArray[np.bool_] = np.logical_not(np.isfinite(rows).all(axis=1)) | (rows.min(axis=1) < least)
        for index, event in enumerate(events):
            if event is not None and bad[event.row]:
                events[index] = None
        return int(bad.sum())


def _details(headers: Headers) -> tuple[bool, str | None]:
    """Whether these headers are certainly valid, and the id among them."""
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
    """The text if it certainly is a valid name; None if only `decode` can tell."""
    try:
        text = (content or b"").decode()
    except UnicodeDecodeError:
        return None
    return text if 0 < len(text) <= _LONGEST_NAME and text.isprintable() else None


def _is_time(content: bytes) -> bool:
    """Whether it certainly is a valid time in UTC."""
    if not content.endswith(b"Z"):
        return False
    try:
        datetime.fromisoformat(content.decode())
    except ValueError:
        return False
    return True
