"""Reads from the embedded bus: given partitions from given offsets, or a topic as a member of a group."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stream_cgzsl.bus.interface import Reader, Subscription
from stream_cgzsl.bus.sqlite.file import (
    OFFSET_BITS,
    SqliteFile,
    commit_offsets,
    partition_id,
    transaction,
    translating,
    unpack_headers,
)
from stream_cgzsl.bus.types import Record, TopicPartition
from stream_cgzsl.errors import Expired

if TYPE_CHECKING:
    from stream_cgzsl.bus.sqlite.bus import SqliteBus

_BYTES = (bytes, type(None))
_POLL_SECONDS = 0.03  # polling an idle file so often takes well under 1 % of a core


class SqliteReader(Reader):
    def __init__(self, file: SqliteFile, start: Mapping[TopicPartition, int]) -> None:
        self._file = file
        self._db = file.open()
        self._next: dict[TopicPartition, int] = {}
        self._ids: dict[TopicPartition, int] = {}
        self._turn = 0
        self.assign(start)

    def assign(self, start: Mapping[TopicPartition, int]) -> None:
        self._ids = {tp: partition_id(self._db, tp.topic, tp.partition, self._file.url) for tp in start}
        self._next = dict(start)

    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:
        deadline = time.monotonic() + timeout
        while True:
            with translating(self._file.url):
                version = self._db.execute("PRAGMA data_version").fetchone()
                records = self._read(max_records)
            if records:
                return records
            while self._db.execute("PRAGMA data_version").fetchone() == version:
                left = deadline - time.monotonic()
                if left <= 0:
                    return []
                time.sleep(min(_POLL_SECONDS, left))

    def _read(self, max_records: int) -> list[Record]:
        """The next records of every partition. Each goes first in turn, so that none starves."""
        partitions = list(self._next)
        self._turn += 1
        turn = self._turn % max(1, len(partitions))
        records: list[Record] = []
        for tp in partitions[turn:] + partitions[:turn]:
            if len(records) >= max_records:
                break
            base, position = self._ids[tp] << OFFSET_BITS, self._next[tp]
            rows = self._db.execute(
                "SELECT place, ms, key, value, headers FROM records "
                "WHERE place >= ? AND place < ? ORDER BY place LIMIT ?",
                (base + position, base + (1 << OFFSET_BITS), max_records - len(records)),
            ).fetchall()
            if not rows or rows[0][0] != base + position:
                self._check_kept(tp, position)
            for place, ms, key, value, headers in rows:
                if type(key) not in _BYTES or type(value) not in _BYTES or type(headers) not in _BYTES:
                    raise ValueError(f"{tp.topic}/{tp.partition}: offset {place - base} is not a record")
                records.append(Record(tp.topic, tp.partition, place - base, ms, key, value, unpack_headers(headers)))
            if rows:
                self._next[tp] = rows[-1][0] - base + 1
        return records

    def _check_kept(self, tp: TopicPartition, position: int) -> None:
        """There is no record at `position`: raises unless it is the end of the log or a gap in it."""
        first, end = self._db.execute("SELECT first, next FROM partitions WHERE id = ?", (self._ids[tp],)).fetchone()
        if position < first:
            raise Expired(
                f"{tp.topic}/{tp.partition}: offset {position} was asked for and the first one kept is {first}; "
                "restore the records, or skip them on purpose"
            )
        if position > end:
            raise Expired(
                f"{tp.topic}/{tp.partition}: offset {position} was asked for and the log ends at {end}; "
                "are the offsets from another file?"
            )

    def position(self, partition: TopicPartition) -> int:
        """A gap at the end of a copied log counts as passed."""
        base, position = self._ids[partition] << OFFSET_BITS, self._next[partition]
        query = "SELECT first, next FROM partitions WHERE id = ?"
        with translating(self._file.url):
            first, end = self._db.execute(query, (self._ids[partition],)).fetchone()
            if position < first:
                return position  # the record there has expired, and `poll` raises that
            after = self._db.execute(
                "SELECT 1 FROM records WHERE place >= ? AND place < ? LIMIT 1", (base + position, base + end)
            ).fetchone()
        return position if after else max(position, end)

    def close(self) -> None:
        self._db.close()


class SqliteSubscription(Subscription):
    """There is no rebalancing: the first member of a group owns every partition, the others stand by.

    Another takes over when the owner's process ends, or when it has not moved for the session timeout.
    """

    def __init__(self, bus: SqliteBus, topic: str, group: str) -> None:
        self._bus = bus
        self._topic = topic
        self._group = group
        self._db = bus.file.open()
        self._reader: SqliteReader | None = None
        self._lock = bus.lock(f"{group}.{topic}", topic)
        bus.end_offsets(topic)  # raises if the topic is missing

    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:
        reader = self._owned()
        if reader is None:
            if not self._lock.acquire(timeout):
                return []
            resume = self._bus.committed(self._group, self._topic)
            first = self._bus.begin_offsets(self._topic)
            reader = self._reader = SqliteReader(
                self._bus.file,
                {TopicPartition(self._topic, number): resume.get(number, start) for number, start in first.items()},
            )
        return reader.poll(timeout, max_records)

    def _owned(self) -> SqliteReader | None:
        """What the owner reads with; None for a standby, and for an owner that has lost its place."""
        if self._reader is not None and not self._lock.held():
            self._reader.close()
            self._reader = None
        return self._reader

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        with transaction(self._db, self._bus.url) as db:
            if self._owned() is not None:
                commit_offsets(db, self._group, offsets)

    def commit_soon(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.commit(offsets)

    def assignment(self) -> frozenset[TopicPartition]:
        if self._owned() is None:
            return frozenset()
        return frozenset(TopicPartition(self._topic, number) for number in self._bus.end_offsets(self._topic))

    def lag(self) -> int:
        reader = self._owned()
        if reader is None:
            return 0
        ends = self._bus.end_offsets(self._topic)
        return sum(end - reader.position(TopicPartition(self._topic, number)) for number, end in ends.items())

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._lock.close()
        self._db.close()
