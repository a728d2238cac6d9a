"""An SQLite file as the bus: `sqlite:///path.db`.

Durability: an acknowledged record survives the death of any process at any moment. After a power failure the file is
intact, but the last records may be missing (as with a Kafka broker that does not fsync); `?synchronous=full` prevents
that at the cost of one disk flush per commit.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from stream_cgzsl.bus.interface import Bus, Lock, OffsetWriter, Publisher, Reader, Subscription, Writer
from stream_cgzsl.bus.sqlite.file import (
    SqliteFile,
    first_offset_at,
    partition_id,
    topic_missing,
    transaction,
    translating,
)
from stream_cgzsl.bus.sqlite.lock import SqliteLock
from stream_cgzsl.bus.sqlite.reading import SqliteReader, SqliteSubscription
from stream_cgzsl.bus.sqlite.writing import SqliteOffsetWriter, SqlitePublisher, SqliteWriter
from stream_cgzsl.bus.types import TopicPartition, TopicSpec
from stream_cgzsl.errors import UsageError


class SqliteBus(Bus):
    """`sqlite:///relative.db` or `sqlite:////absolute.db`. The file is created if it does not exist."""

    client = f"sqlite {sqlite3.sqlite_version}"

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
        with translating(self.url):
            rows = self._db.execute("SELECT name, partitions, cleanup, settings FROM topics")
            return {
                name: TopicSpec(name, count, cleanup, dict(json.loads(settings)))
                for name, count, cleanup, settings in rows
            }

    def create(self, specs: Iterable[TopicSpec]) -> None:
        with transaction(self._db, self.url) as db:
            for spec in specs:
                row = (spec.name, spec.partitions, spec.cleanup, json.dumps(dict(spec.settings)))
                if db.execute("INSERT OR IGNORE INTO topics VALUES (?, ?, ?, ?)", row).rowcount:
                    db.executemany(
                        "INSERT INTO partitions (topic, number) VALUES (?, ?)",
                        [(spec.name, number) for number in range(spec.partitions)],
                    )
                    db.execute("INSERT OR REPLACE INTO topic_ids VALUES (?, ?)", (spec.name, uuid.uuid4().hex))

    def topic_ids(self, names: Iterable[str]) -> dict[str, str | None]:
        names = list(names)
        with translating(self.url):
            there = {name for (name,) in self._db.execute("SELECT name FROM topics")}
            ids = dict(self._db.execute("SELECT topic, id FROM topic_ids").fetchall())
        for name in names:
            if name not in there:
                raise topic_missing(name, self.url)
        return {name: ids.get(name) for name in names}

    def begin_offsets(self, topic: str) -> dict[int, int]:
        return {number: first for number, first, _ in self._partitions(topic)}

    def end_offsets(self, topic: str) -> dict[int, int]:
        return {number: end for number, _, end in self._partitions(topic)}

    def _partitions(self, topic: str) -> list[tuple[int, int, int]]:
        query = "SELECT number, first, next FROM partitions WHERE topic = ? ORDER BY number"
        with translating(self.url):
            rows = [(int(number), int(first), int(end)) for number, first, end in self._db.execute(query, (topic,))]
        if not rows:
            raise topic_missing(topic, self.url)
        return rows

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int | None]:
        return {
            number: first_offset_at(self._db, partition_id(self._db, topic, number, self.url), first, end, timestamp_ms)
            for number, first, end in self._partitions(topic)
        }

    def committed(self, group: str, topic: str) -> dict[int, int]:
        query = "SELECT partition, next FROM committed WHERE grp = ? AND topic = ?"
        with translating(self.url):
            return dict(self._db.execute(query, (group, topic)).fetchall())

    def reader(self, start: Mapping[TopicPartition, int], waits: bool = True) -> Reader:  # noqa: ARG002 - never delays
        return SqliteReader(self.file, start)

    def subscribe(self, topic: str, group: str) -> Subscription:
        return SqliteSubscription(self, topic, group)

    def writer(self) -> Writer:
        return SqliteWriter(self.file)

    def lock(self, name: str, topic: str) -> Lock:  # noqa: ARG002 - only Kafka needs the topic
        return SqliteLock(self.file.path, name, self._session_seconds)

    def publisher(self, name: str) -> Publisher:
        return SqlitePublisher(self.file, name)

    def offset_writer(self, partition: TopicPartition) -> OffsetWriter:
        return SqliteOffsetWriter(self.file, partition)

    def close(self) -> None:
        self._db.close()
