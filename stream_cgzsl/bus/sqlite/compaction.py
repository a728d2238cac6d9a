"""Removes from a bus file what newer records have replaced, as Kafka does by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

from stream_cgzsl.bus.sqlite.bus import SqliteBus
from stream_cgzsl.bus.sqlite.file import OFFSET_BITS, partition_id, transaction, translating

_AT_ONCE = 500
"""Records per transaction, so that writers need not wait long."""


def compact(bus: SqliteBus, report: Callable[[str, int], None] = lambda *_: None) -> int:
    """Keeps the newest record of each key in every topic with cleanup `compact`, and all offsets.

    Returns how many records were removed; `report` is called with the topic after each batch. Others may go on reading
    and writing, except that writers wait while the file is packed, at the end.
    """
    removed = 0
    with closing(bus.file.open()) as db:
        for topic, spec in bus.topics().items():
            if spec.cleanup == "compact":
                for partition in range(spec.partitions):
                    base = partition_id(db, topic, partition, bus.url) << OFFSET_BITS
                    replaced = _replaced(db, bus.url, base)
                    for start in range(0, len(replaced), _AT_ONCE):
                        batch = replaced[start : start + _AT_ONCE]
                        with transaction(db, bus.url):
                            db.executemany("DELETE FROM records WHERE place = ?", batch)
                        removed += len(batch)
                        report(topic, len(batch))
        with translating(bus.url):
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return removed


def _replaced(db: sqlite3.Connection, url: str, base: int) -> list[tuple[int]]:
    """The places of a partition whose key a later record has too, oldest first."""
    query = (
        "SELECT place FROM (SELECT place, max(place) OVER (PARTITION BY key) AS newest FROM records "
        "WHERE place >= ? AND place < ? AND key IS NOT NULL) WHERE place < newest ORDER BY place"
    )
    with translating(url):
        return db.execute(query, (base, base + (1 << OFFSET_BITS))).fetchall()
