"""Writes records to Kafka at given offsets, so that the ledger of a copied stream still points to the right records.

Kafka assigns consecutive offsets. Gaps are filled with offsets that no reader sees: the marker at the end of a
transaction takes one, and so does each record of an aborted transaction. Before the first record, filler records are
written and deleted again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from stream_cgzsl.bus.interface import OffsetWriter, Publisher, Writer
from stream_cgzsl.bus.types import Receipt, Record, TopicPartition
from stream_cgzsl.errors import Refused
from stream_cgzsl.schemas.message import Message

_FILLER = Message(b"-", b"")
_MAX_BATCH = 5_000
_PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.005


class KafkaOffsetWriter(OffsetWriter):
    """`end_offset` looks up where the partition ends for readers.

    `delete_before` deletes the records before an offset; None for a compacted topic, where Kafka does not allow it.
    """

    def __init__(
        self,
        url: str,
        tp: TopicPartition,
        writer: Writer,
        open_publisher: Callable[[], Publisher],
        end_offset: Callable[[], int],
        delete_before: Callable[[int], None] | None,
    ) -> None:
        self._url = url
        self._end_offset = end_offset
        self._tp = tp
        self._writer = writer
        self._open_publisher = open_publisher
        self._opened: Publisher | None = None
        self._delete_before = delete_before
        self._next = 0  # the offset after everything added
        self._held: Record | None = None  # the last record added: how it is written depends on the next offset
        self._receipts: list[tuple[int, Receipt]] = []

    def begin(self, first: int) -> None:
        if self._delete_before is None:
            self._fill(0, first)
        elif first:
            for offset in range(first):
                self._send(offset, _FILLER)
            self._flush()
            self._delete_before(first)
        self._next = first

    def add(self, records: Sequence[Record]) -> None:
        for record in records:
            self._write_held(record.offset)
            self._held = record
            self._next = record.offset + 1
        self._flush()

    def end(self, end: int) -> None:
        self._write_held(end)
        self._flush()

    def _write_held(self, following: int) -> None:
        """Writes the record held back and fills the gap up to offset `following`.

        A gap of one offset is filled by the transaction marker after the record itself.
        """
        record, self._held = self._held, None
        after, self._next = self._next, following
        if record is None:
            self._fill(after, following)
            return
        message = Message(record.key, record.value, record.headers, record.timestamp_ms)
        if following - after != 1:
            self._send(record.offset, message)
            self._fill(after, following)
            return
        self._flush()
        self._publisher.begin()
        receipt = self._publisher.send(self._tp.topic, message, self._tp.partition)
        self._publisher.commit()
        self._check(record.offset, receipt)

    def _send(self, offset: int, message: Message) -> None:
        self._receipts.append((offset, self._writer.send(self._tp.topic, message, self._tp.partition)))
        if len(self._receipts) >= _MAX_BATCH:
            self._flush()

    def _flush(self) -> None:
        self._writer.flush()
        for offset, receipt in self._receipts:
            self._check(offset, receipt)
        self._receipts.clear()

    def _fill(self, start: int, end: int) -> None:
        """Fills the offsets with aborted transactions. Each takes at least two: one record and the marker."""
        if end - start == 1:
            raise self._refused("one offset alone before the first record cannot be filled.")
        if start < end:
            self._flush()
        while start < end:
            size = end - start if end - start <= _MAX_BATCH else min(_MAX_BATCH, end - start - 2)
            self._publisher.begin()
            for _ in range(size - 1):
                self._publisher.send(self._tp.topic, _FILLER, self._tp.partition)
            self._publisher.flush()  # records not yet written when the transaction is aborted would take no offset
            self._publisher.abort()
            start += size
            self._wait_for_end(start)

    def _wait_for_end(self, end: int) -> None:
        """The marker of a transaction is written a little after the abort returns."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (actual := self._end_offset()) != end:
            if time.monotonic() > deadline:
                raise self._refused(f"it ends at {actual} and should end at {end}; does another process write to it?")
            time.sleep(_POLL_SECONDS)

    @property
    def _publisher(self) -> Publisher:
        if self._opened is None:
            self._opened = self._open_publisher()
        return self._opened

    def _check(self, offset: int, receipt: Receipt) -> None:
        if receipt.offset != offset:
            raise self._refused(
                f"the record for offset {offset} was written at {receipt.offset}; does another process write to it?"
            )

    def _refused(self, reason: str) -> Refused:
        return Refused(
            f"{self._url}: {self._tp.topic}/{self._tp.partition}: {reason} "
            "Delete the topics and copy again, or copy to SQLite"
        )

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
        self._writer.close()
