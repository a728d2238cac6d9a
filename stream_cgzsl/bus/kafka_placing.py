"""Writing to Kafka at offsets of our own choosing, so that a copied ledger still points to what it speaks of.

Kafka gives offsets one after the other. What lay between two records is filled with what no reader is ever shown: the end
of a transaction takes one offset, a record of an aborted transaction one each. Before the first record, fillers are written
and removed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from stream_cgzsl.bus.interface import Placing, Publisher, Receipt, Record, TopicPartition, Writer
from stream_cgzsl.errors import Refused
from stream_cgzsl.schemas.message import Message

_FILLER = Message(b"-", b"")
_TOGETHER = 5_000
_PATIENCE_SECONDS = 30.0
_LOOK_SECONDS = 0.005


class KafkaPlacing(Placing):
    """`reached` asks where the partition ends for its readers; `remove` deletes what stands before an offset, and is None
    where the topic is compacted and that cannot be done.
    """

    def __init__(
        self,
        url: str,
        tp: TopicPartition,
        writer: Writer,
        publisher: Callable[[], Publisher],
        reached: Callable[[], int],
        remove: Callable[[int], None] | None,
    ) -> None:
        self._url = url
        self._reached = reached
        self._tp = tp
        self._writer = writer
        self._make_publisher = publisher
        self._made: Publisher | None = None
        self._remove = remove
        self._next = 0  # the offset after all that is settled
        self._held: Record | None = None
        self._receipts: list[tuple[int, Receipt]] = []

    def begin(self, first: int) -> None:
        if self._remove is None:
            self._fill(0, first)
        elif first:
            for offset in range(first):
                self._send(offset, _FILLER)
            self._flush()
            self._remove(first)
        self._next = first

    def add(self, records: Sequence[Record]) -> None:
        for record in records:
            self._settle(record.offset)
            self._held = record
            self._next = record.offset + 1
        self._flush()

    def end(self, end: int) -> None:
        self._settle(end)
        self._flush()

    def _settle(self, following: int) -> None:
        """Writes the record that was held back until it is known what follows it, and fills what lies between."""
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
        if len(self._receipts) >= _TOGETHER:
            self._flush()

    def _flush(self) -> None:
        self._writer.flush()
        for offset, receipt in self._receipts:
            self._check(offset, receipt)
        self._receipts.clear()

    def _fill(self, start: int, end: int) -> None:
        """Aborted transactions, each of some records and its end: two offsets at least."""
        if end - start == 1:
            raise self._misplaced("one offset alone before the first record cannot be filled.")
        if start < end:
            self._flush()
        while start < end:
            size = end - start if end - start <= _TOGETHER else min(_TOGETHER, end - start - 2)
            self._publisher.begin()
            for _ in range(size - 1):
                self._publisher.send(self._tp.topic, _FILLER, self._tp.partition)
            self._publisher.flush()  # what is not written yet when a transaction is aborted takes no offset
            self._publisher.abort()
            start += size
            self._wait_for(start)

    def _wait_for(self, end: int) -> None:
        """The end of a transaction is written when it is decided, not before that is told."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (reached := self._reached()) != end:
            if time.monotonic() > deadline:
                raise self._misplaced(f"it ends at {reached} and should end at {end}; does someone else write there?")
            time.sleep(_LOOK_SECONDS)

    @property
    def _publisher(self) -> Publisher:
        if self._made is None:
            self._made = self._make_publisher()
        return self._made

    def _check(self, offset: int, receipt: Receipt) -> None:
        if receipt.offset != offset:
            raise self._misplaced(f"offset {offset} came to stand at {receipt.offset}; does someone else write there?")

    def _misplaced(self, what: str) -> Refused:
        return Refused(
            f"{self._url}: {self._tp.topic}/{self._tp.partition}: {what} Delete the topics and copy again, or copy to SQLite"
        )

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
        self._writer.close()
