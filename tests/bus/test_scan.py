"""Scanning a topic between two sets of offsets, skipping records that have expired."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from expiry import expire
from helpers import sqlite_url

from stream_cgzsl.bus import Bus, TopicSpec, connect
from stream_cgzsl.bus.scan import scan
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


def offsets(bus: Bus, positions: dict[int, int], ends: dict[int, int]) -> list[tuple[int, int]]:
    return sorted((r.partition, r.offset) for records in scan(bus, TOPIC, positions, ends) for r in records)


def test_reads_from_the_positions_to_the_ends(embedded: Bus) -> None:
    positions = {1: 3}
    assert offsets(embedded, positions, {0: 2, 1: 5}) == [(0, 0), (0, 1), (1, 3), (1, 4)]
    assert positions == {0: 2, 1: 5}
    assert offsets(embedded, positions, {0: 2, 1: 4}) == []
    assert positions == {0: 2, 1: 5}


def test_expired_records_are_skipped(embedded: Bus, caplog: pytest.LogCaptureFixture) -> None:
    expire(embedded, TOPIC, 0, before=3)
    with caplog.at_level(logging.INFO):
        assert offsets(embedded, {}, {0: 5, 1: 1}) == [(0, 3), (0, 4), (1, 0)]
    assert "t/0: skipping [0, 3), which has expired" in caplog.text


def test_records_that_expire_during_the_scan_are_skipped(embedded: Bus) -> None:
    positions = {0: 0}
    scanning = scan(embedded, TOPIC, positions, {0: 5})
    with embedded.reader({}) as reader:
        original = type(reader).poll

        def one(self: Any, timeout: float, max_records: int = 1) -> Any:  # noqa: ARG001
            return original(self, timeout, 1)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(type(reader), "poll", one)
            first = next(scanning)
            expire(embedded, TOPIC, 0, before=4)
            rest = [r.offset for records in scanning for r in records]
    assert ([r.offset for r in first], rest, positions) == ([0], [4], {0: 5})


def test_a_topic_that_ends_early_is_logged_and_read_to_its_end(embedded: Bus, caplog: pytest.LogCaptureFixture) -> None:
    assert offsets(embedded, {}, {0: 9, 1: 0}) == [(0, n) for n in range(5)]
    assert "t/0 ends at 5 instead of 9; was the topic recreated?" in caplog.text
