"""Writes to the embedded bus: single records, or records in a transaction."""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence

from stream_cgzsl.bus.interface import OffsetWriter, Publisher, Writer
from stream_cgzsl.bus.sqlite.file import (
    MAX_VALUE_BYTES,
    OFFSET_BITS,
    SqliteFile,
    commit_offsets,
    pack_headers,
    topic_missing,
    transaction,
    translate,
)
from stream_cgzsl.bus.types import Receipt, Record, TopicPartition
from stream_cgzsl.errors import Fenced, MessageTooLarge, Refused, TopicMissing
from stream_cgzsl.schemas.message import Message

_BUFFER_BYTES = 4 * 1024 * 1024


class Appender:
    """Appends to partitions in an open transaction. Their counters stay in memory until `store`."""

    def __init__(self, db: sqlite3.Connection, url: str) -> None:
        self._db = db
        self._url = url
        self._counters: dict[TopicPartition, list[int]] = {}  # id, next offset, latest ms
        self._counts: dict[str, int] = {}  # partitions by topic
        self._turn = 0

    def choose_partition(self, topic: str, message: Message, partition: int | None) -> TopicPartition:
        """The given partition, else the one for the message's key, else the next in turn. Checks the message's size."""
        count = self._counts.get(topic)
        if count is None:
            row = self._db.execute("SELECT partitions FROM topics WHERE name = ?", (topic,)).fetchone()
            if row is None:
                raise topic_missing(topic, self._url)
            count = self._counts[topic] = row[0]
        if partition is None:
            if message.key is not None:
                partition = zlib.crc32(message.key) % count
            else:
                self._turn += 1
                partition = self._turn % count
        if not 0 <= partition < count:
            raise TopicMissing(f"{self._url}: topic {topic!r} has partitions 0 to {count - 1}, not {partition}")
        if message.value is not None and len(message.value) > MAX_VALUE_BYTES:
            raise MessageTooLarge(
                f"{self._url}: a record of {len(message.value):,} bytes for {topic!r} is over the limit of "
                f"{MAX_VALUE_BYTES:,}; send less in one record"
            )
        return TopicPartition(topic, partition)

    def append(self, batch: Iterable[tuple[TopicPartition, Message, Receipt]], now_ms: int) -> None:
        rows = []
        for tp, message, receipt in batch:
            counter = self._counters.get(tp) or self._load(tp)
            ms = now_ms if message.timestamp_ms is None else message.timestamp_ms
            counter[2] = max(counter[2], ms)
            receipt.partition, receipt.offset = tp.partition, counter[1]
            place = counter[0] << OFFSET_BITS | counter[1]
            counter[1] += 1
            rows.append((place, ms, counter[2], message.key, pack_headers(message.headers), message.value))
        self._db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", rows)

    def append_at_offsets(self, tp: TopicPartition, records: Iterable[Record]) -> None:
        """Appends records at their own offsets, leaving gaps, and stores the counters."""
        counter, rows = self._load(tp), []
        for record in records:
            if record.offset < counter[1]:
                raise Refused(
                    f"{self._url}: {tp.topic}/{tp.partition} already ends at {counter[1]}, after offset "
                    f"{record.offset}; copy to an empty topic"
                )
            counter[1], counter[2] = record.offset + 1, max(counter[2], record.timestamp_ms)
            place = counter[0] << OFFSET_BITS | record.offset
            headers = pack_headers(record.headers)
            rows.append((place, record.timestamp_ms, counter[2], record.key, headers, record.value))
        self._db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", rows)
        self.store()

    def _load(self, tp: TopicPartition) -> list[int]:
        query = "SELECT id, next, latest_ms FROM partitions WHERE topic = ? AND number = ?"
        row = self._db.execute(query, tp).fetchone()
        if row is None:
            raise topic_missing(tp.topic, self._url)
        counter = self._counters[tp] = list(row)
        return counter

    def store(self) -> None:
        self._db.executemany(
            "UPDATE partitions SET next = ?, latest_ms = ? WHERE id = ?",
            [(following, latest, number) for number, following, latest in self._counters.values()],
        )
        self._counters.clear()

    def clear(self) -> None:
        self._counters.clear()


class SqliteWriter(Writer):
    """Buffers messages and appends them in one transaction, at `flush` or when there are 4 MiB."""

    def __init__(self, file: SqliteFile) -> None:
        self._db = file.open()
        self._url = file.url
        self._appender = Appender(self._db, file.url)
        self._buffer: list[tuple[TopicPartition, Message, Receipt]] = []
        self._bytes = 0

    def send(self, topic: str, message: Message, partition: int | None = None) -> Receipt:
        receipt = Receipt()
        self._buffer.append((self._appender.choose_partition(topic, message, partition), message, receipt))
        self._bytes += len(message.value or b"") + 100
        if self._bytes >= _BUFFER_BYTES:
            self.flush()
        return receipt

    def push(self) -> None:
        self.flush()

    def flush(self) -> None:
        if not self._buffer:
            return
        batch, self._buffer, self._bytes = self._buffer, [], 0
        try:
            with transaction(self._db, self._url):
                self._appender.append(batch, _now_ms())
                self._appender.store()
        finally:
            self._appender.clear()

    def close(self) -> None:
        self.flush()
        self._db.close()


class SqlitePublisher(Publisher):
    """Holds the file's write lock from `begin` to `commit` or `abort`: other writers wait, readers do not."""

    def __init__(self, file: SqliteFile, name: str) -> None:
        self._db = file.open()
        self._url = file.url
        self._name = name
        self._appender = Appender(self._db, file.url)
        self._buffer: list[tuple[TopicPartition, Message, Receipt]] = []
        with transaction(self._db, self._url) as db:
            self._epoch = db.execute(
                "INSERT INTO publishers VALUES (?, 1) "
                "ON CONFLICT (name) DO UPDATE SET epoch = epoch + 1 RETURNING epoch",
                (name,),
            ).fetchone()[0]

    def begin(self) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise translate(error, self._url) from error
        epoch = self._db.execute("SELECT epoch FROM publishers WHERE name = ?", (self._name,)).fetchone()[0]
        if epoch != self._epoch:
            self.abort()
            raise Fenced(
                f"{self._url}: publisher {self._name!r} has been replaced by a newer one (epoch {epoch}, this is "
                f"{self._epoch}); stop this process, the newer one has taken over"
            )

    def send(self, topic: str, message: Message, partition: int | None = None) -> Receipt:
        if not self._db.in_transaction:
            raise RuntimeError("send outside a transaction: call begin() first")
        receipt = Receipt()
        self._buffer.append((self._appender.choose_partition(topic, message, partition), message, receipt))
        return receipt

    def flush(self) -> None:
        batch, self._buffer = self._buffer, []
        try:
            self._appender.append(batch, _now_ms())
        except sqlite3.Error as error:
            raise translate(error, self._url) from error

    def commit(self, group: str | None = None, consumed: Mapping[TopicPartition, int] | None = None) -> None:
        self.flush()
        try:
            self._appender.store()
            if group is not None and consumed:
                commit_offsets(self._db, group, consumed)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self.abort()
            raise translate(error, self._url) from error

    def abort(self) -> None:
        self._buffer.clear()
        self._appender.clear()
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def close(self) -> None:
        self.abort()
        self._db.close()


class SqliteOffsetWriter(OffsetWriter):
    def __init__(self, file: SqliteFile, tp: TopicPartition) -> None:
        self._db = file.open()
        self._url = file.url
        self._tp = tp
        self._first = 0

    def begin(self, first: int) -> None:
        self._first = first

    def add(self, records: Sequence[Record]) -> None:
        with transaction(self._db, self._url):
            Appender(self._db, self._url).append_at_offsets(self._tp, records)

    def end(self, end: int) -> None:
        query = "UPDATE partitions SET first = ?, next = max(next, ?) WHERE topic = ? AND number = ?"
        with transaction(self._db, self._url):
            self._db.execute(query, (self._first, end, *self._tp))

    def close(self) -> None:
        self._db.close()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
