"""Reading a topic through: every record between two sets of offsets, and on without those that are gone."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from helpers import sqlite_url

from stream_cgzsl.bus import Bus, TopicSpec, connect
from stream_cgzsl.bus.through import read_through
from stream_cgzsl.schemas import Message

TOPIC = "t"


@pytest.fixture
def embedded(tmp_path: Path) -> Any:
    with connect(sqlite_url(tmp_path)) as bus:
        bus.create([TopicSpec(TOPIC, 2)])
        with bus.writer() as writer:
            for number in range(10):
                writer.send(TOPIC, Message(None, b"%d" % number), partition=number % 2)
        yield bus


def offsets(bus: Bus, taken: dict[int, int], until: dict[int, int]) -> list[tuple[int, int]]:
    return sorted((r.partition, r.offset) for records in read_through(bus, TOPIC, taken, until) for r in records)


def expire(bus: Bus, partition: int, first: int) -> None:
    with closing(sqlite3.connect(bus.url.removeprefix("sqlite:///"))) as db, db:
        place = (TOPIC, partition)
        (number,) = db.execute("SELECT id FROM partitions WHERE topic = ? AND number = ?", place).fetchone()
        db.execute("DELETE FROM records WHERE place >> 40 = ? AND place & ? < ?", (number, 2**40 - 1, first))
        db.execute("UPDATE partitions SET first = ? WHERE id = ?", (first, number))


def test_from_where_it_was_to_where_it_should(embedded: Bus) -> None:
    taken = {1: 3}
    assert offsets(embedded, taken, {0: 2, 1: 5}) == [(0, 0), (0, 1), (1, 3), (1, 4)]
    assert taken == {0: 2, 1: 5}
    assert offsets(embedded, taken, {0: 2, 1: 4}) == []
    assert taken == {0: 2, 1: 5}


def test_what_has_expired_is_passed_over(embedded: Bus, caplog: pytest.LogCaptureFixture) -> None:
    expire(embedded, 0, 3)
    with caplog.at_level(logging.INFO):
        assert offsets(embedded, {}, {0: 5, 1: 1}) == [(0, 3), (0, 4), (1, 0)]
    assert "t/0: [0, 3) has expired and is passed over" in caplog.text


def test_what_expires_on_the_way_is_passed_over(embedded: Bus) -> None:
    taken = {0: 0}
    reading = read_through(embedded, TOPIC, taken, {0: 5})
    with embedded.reader({}) as reader:
        original = type(reader).poll

        def one(self: Any, timeout: float, max_records: int = 1) -> Any:  # noqa: ARG001
            return original(self, timeout, 1)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(type(reader), "poll", one)
            first = next(reading)
            expire(embedded, 0, 4)
            rest = [r.offset for records in reading for r in records]
    assert ([r.offset for r in first], rest, taken) == ([0], [4], {0: 5})


def test_a_topic_that_ends_early_is_told_and_read_to_its_end(embedded: Bus, caplog: pytest.LogCaptureFixture) -> None:
    assert offsets(embedded, {}, {0: 9, 1: 0}) == [(0, n) for n in range(5)]
    assert "t/0 ends at 5, and should at 9; was it made anew?" in caplog.text
