"""The embedded bus: one SQLite file, several processes at once, no server.

Durability: an acknowledged record survives the death of any process at any moment. After a power cut the file is
whole, but the last moments may be missing (as with a Kafka broker that does not fsync); `?synchronous=full` closes
that gap at the price of one disk flush a commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from stream_cgzsl.bus.interface import (
    Bus,
    Lock,
    Placing,
    Publisher,
    Reader,
    Record,
    Subscription,
    TopicPartition,
    TopicSpec,
    Writer,
)
from stream_cgzsl.bus.lease import Lease
from stream_cgzsl.bus.sqlite_file import SqliteFile, first_at, missing, partition_id, reading, writing
from stream_cgzsl.bus.sqlite_reading import SqliteReader, SqliteSubscription
from stream_cgzsl.bus.sqlite_writing import Appender, SqlitePublisher, SqliteWriter
from stream_cgzsl.errors import UsageError


class SqliteBus(Bus):
    """`sqlite:///relative.db`, `sqlite:////absolute.db`. The file is made when it is not there."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        path = unquote(parts.path)[1:]
        if parts.netloc or not path:
            raise UsageError(f"{url!r} names no file: use sqlite:///relative.db or sqlite:////absolute/path.db")
        options = {name: values[-1].lower() for name, values in parse_qs(parts.query).items()}
        synchronous = options.pop("synchronous", "normal")
        session = options.pop("session_timeout_ms", "15000")
        if options or synchronous not in ("normal", "full") or not session.isdigit() or int(session) < 1000:
            raise UsageError(
                f"{url!r}: the options are synchronous=normal or full, and session_timeout_ms, at least 1000"
            )
        self._session_seconds = int(session) / 1000
        self.file = SqliteFile(Path(path), synchronous)
        self.url = self.file.url
        self._db = self.file.open()

    def topics(self) -> dict[str, TopicSpec]:
        with reading(self.url):
            rows = self._db.execute("SELECT name, partitions, cleanup, settings FROM topics")
            return {
                name: TopicSpec(name, count, kept, dict(json.loads(settings))) for name, count, kept, settings in rows
            }

    def create(self, specs: Iterable[TopicSpec]) -> None:
        with writing(self._db, self.url) as db:
            for spec in specs:
                row = (spec.name, spec.partitions, spec.cleanup, json.dumps(dict(spec.settings)))
                if db.execute("INSERT OR IGNORE INTO topics VALUES (?, ?, ?, ?)", row).rowcount:
                    db.executemany(
                        "INSERT INTO partitions (topic, number) VALUES (?, ?)",
                        [(spec.name, number) for number in range(spec.partitions)],
                    )

    def begin_offsets(self, topic: str) -> dict[int, int]:
        return {number: first for number, first, _ in self._partitions(topic)}

    def end_offsets(self, topic: str) -> dict[int, int]:
        return {number: end for number, _, end in self._partitions(topic)}

    def _partitions(self, topic: str) -> list[tuple[int, int, int]]:
        query = "SELECT number, first, next FROM partitions WHERE topic = ? ORDER BY number"
        with reading(self.url):
            rows = [(int(number), int(first), int(end)) for number, first, end in self._db.execute(query, (topic,))]
        if not rows:
            raise missing(topic, self.url)
        return rows

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int | None]:
        return {
            number: first_at(self._db, partition_id(self._db, topic, number, self.url), first, end, timestamp_ms)
            for number, first, end in self._partitions(topic)
        }

    def committed(self, group: str, topic: str) -> dict[int, int]:
        query = "SELECT partition, next FROM committed WHERE grp = ? AND topic = ?"
        with reading(self.url):
            return dict(self._db.execute(query, (group, topic)).fetchall())

    def reader(self, start: Mapping[TopicPartition, int], waits: bool = True) -> Reader:  # noqa: ARG002 - a file holds nothing up
        return SqliteReader(self.file, start)

    def subscribe(self, topic: str, group: str) -> Subscription:
        return SqliteSubscription(self, topic, group)

    def writer(self) -> Writer:
        return SqliteWriter(self.file)

    def lock(self, name: str, topic: str) -> Lock:  # noqa: ARG002 - the topic is what Kafka needs
        return Lease(self.file.path, name, self._session_seconds)

    def publisher(self, name: str) -> Publisher:
        return SqlitePublisher(self.file, name)

    def placing(self, partition: TopicPartition) -> Placing:
        return SqlitePlacing(self, partition)

    def place(self, tp: TopicPartition, records: Sequence[Record]) -> None:
        """Writes records at the offsets they have, which must lie behind everything there is. For copies."""
        with writing(self._db, self.url):
            Appender(self._db, self.url).place_at(tp, records)

    def bound(self, tp: TopicPartition, first: int, end: int) -> None:
        """Says where a copied partition begins and ends, when that is not at a record."""
        with writing(self._db, self.url) as db:
            db.execute(
                "UPDATE partitions SET first = ?, next = max(next, ?) WHERE topic = ? AND number = ?", (first, end, *tp)
            )

    def close(self) -> None:
        self._db.close()


class SqlitePlacing(Placing):
    def __init__(self, bus: SqliteBus, tp: TopicPartition) -> None:
        self._bus = bus
        self._tp = tp
        self._first = 0

    def begin(self, first: int) -> None:
        self._first = first

    def add(self, records: Sequence[Record]) -> None:
        self._bus.place(self._tp, records)

    def end(self, end: int) -> None:
        self._bus.bound(self._tp, self._first, end)

    def close(self) -> None:
        pass  # the connection is the bus's own
