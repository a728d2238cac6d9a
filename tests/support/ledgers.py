"""Ledger records made by hand, and changing what is on a SQLite bus without the bus."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from helpers import GENESIS, TOPICS

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.sqlite.file import OFFSET_BITS, pack_headers
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import LedgerRecord, Message, Range
from stream_cgzsl.windows.commit import Commit, write_commit


def window_record(number: int = 1, **changes: Any) -> LedgerRecord:
    """Window `number` of a stream with two partitions: one description and ten features per window."""
    fields: dict[str, Any] = {
        "number": number,
        "kind": "train",
        "policy": "marker",
        "reason": "task",
        "ranges": {
            "attributes": {0: Range(start=number - 1, end=number, accepted=1), 1: Range(start=0, end=0)},
            "features": {0: Range(start=10 * number - 10, end=10 * number, accepted=10), 1: Range(start=0, end=0)},
            "control": {0: Range(start=number - 1, end=number, accepted=1)},
        },
        "configuration_digest": "0" * 64,
        "code": "0.1",
    }
    return LedgerRecord(**{**fields, **changes})


def genesis_record(**changes: Any) -> LedgerRecord:
    """Record 0 of a stream whose topics were empty."""
    nothing = Range(start=0, end=0)
    fields: dict[str, Any] = {
        "number": 0,
        "kind": "genesis",
        "reason": "genesis",
        "genesis": GENESIS,
        "ranges": {
            "attributes": {0: nothing, 1: nothing},
            "features": {0: nothing, 1: nothing},
            "control": {0: nothing},
        },
        "holdout": {0: 0, 1: 0},
        "configuration_digest": "0" * 64,
        "code": "0.1",
    }
    return LedgerRecord(**{**fields, **changes})


def write(bus: Bus, commit: Commit, topics: Topics = TOPICS) -> LedgerRecord:
    """Commits as the stream's learner would; returns the record as written."""
    with bus.publisher(f"{topics.prefix}.learner") as publisher:
        return write_commit(publisher, topics, commit)


def replace_record(bus: Bus, role: str, offset: int, message: Message | None) -> None:
    """Puts another record at an offset of partition 0, or none. Bypasses the bus, as a person with the file could."""
    with closing(sqlite3.connect(bus.url.removeprefix("sqlite:///"))) as db, db:
        (number,) = db.execute("SELECT id FROM partitions WHERE topic = ? AND number = 0", (TOPICS[role],)).fetchone()
        place = number << OFFSET_BITS | offset
        if message is None:
            db.execute("DELETE FROM records WHERE place = ?", (place,))
        else:
            db.execute(
                "UPDATE records SET key = ?, value = ?, headers = ? WHERE place = ?",
                (message.key, message.value, pack_headers(message.headers), place),
            )


def truncate(bus: Bus, role: str, end: int) -> None:
    """Makes partition 0 of a topic end at an offset, as if the topic had been deleted and recreated."""
    with closing(sqlite3.connect(bus.url.removeprefix("sqlite:///"))) as db, db:
        (number,) = db.execute("SELECT id FROM partitions WHERE topic = ? AND number = 0", (TOPICS[role],)).fetchone()
        first = number << OFFSET_BITS
        db.execute("DELETE FROM records WHERE place >= ? AND place < ?", (first | end, (number + 1) << OFFSET_BITS))
        db.execute("UPDATE partitions SET next = ? WHERE id = ?", (end, number))
