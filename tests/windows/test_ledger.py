"""Reading the ledger, from its end or from its beginning, and the snapshots it points to."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import TOPICS, new_bus, sqlite_url
from ledgers import genesis_record, replace_record, truncate, window_record, write
from patience import until

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.schemas import CHUNK_BYTES, Message, StateChunk, encode
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.commit import Commit
from stream_cgzsl.windows.ledger import Incomplete

TWO_CHUNKS = bytes(CHUNK_BYTES + 1)


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


# ---- records


def test_the_whole_ledger_is_read_in_order(bus: Bus) -> None:
    written = [write(bus, Commit(genesis_record())), *(write(bus, Commit(window_record(n))) for n in (1, 2))]
    assert ledger.read_all(bus, TOPICS) == written


def test_an_empty_ledger_has_no_last_record(bus: Bus) -> None:
    assert ledger.read_last(bus, TOPICS) == (None, 0)
    assert ledger.read_all(bus, TOPICS) == []


@pytest.mark.parametrize("numbers", [(0, 2), (1,), (0, 0), (0, 1, 1)])
def test_a_ledger_whose_numbers_are_not_consecutive_is_broken(bus: Bus, numbers: tuple[int, ...]) -> None:
    with bus.writer() as writer:
        for number in numbers:
            writer.send(TOPICS["windows"], encode(window_record(1).model_copy(update={"number": number})))
    with pytest.raises(BrokenLedger, match=r"t\.windows has record \d where record \d should be"):
        ledger.read_all(bus, TOPICS)


def test_a_foreign_record_in_the_ledger_is_reported_with_its_offset(bus: Bus) -> None:
    write(bus, Commit(genesis_record()))
    with bus.writer() as writer:
        writer.send(TOPICS["windows"], Message(b"1", b"hello"))
    for read in (ledger.read_all, ledger.read_last):
        with pytest.raises(BrokenLedger, match=r"t\.windows/0 offset 1: not-json.*Only learners may write"):
            read(bus, TOPICS)


def test_reading_the_last_record_costs_the_same_however_long_the_ledger_is(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bus.writer() as writer:
        for number in range(500):
            writer.send(TOPICS["windows"], encode(genesis_record(number=number)))
    original, offsets_read = ledger.read_range, 0

    def counting(bus: Bus, topic: str, start: int, end: int, *_: int) -> Iterator[Any]:
        nonlocal offsets_read
        offsets_read += end - start
        return original(bus, topic, start, end)

    monkeypatch.setattr(ledger, "read_range", counting)
    last, end = ledger.read_last(bus, TOPICS)
    assert last is not None and (last.number, end) == (499, 500)
    assert offsets_read <= 4


def test_the_last_record_is_found_before_many_aborted_commits(kafka_url: str) -> None:
    topics = Topics(f"ledger-{uuid.uuid4().hex[:8]}")
    with new_bus(kafka_url, 2, topics) as bus:
        write(bus, Commit(genesis_record()), topics)
        with bus.publisher(f"{topics.prefix}.learner") as publisher:
            for _ in range(20):
                publisher.begin()
                publisher.send(topics["windows"], encode(window_record()))
                publisher.flush()
                publisher.abort()
        # An abort is decided before its marker is in every partition.
        until(lambda: bus.end_offsets(topics["windows"])[0] == 42, "the marker of the last abort")
        assert ledger.read_last(bus, topics) == (genesis_record(), 42)
        assert ledger.read_all(bus, topics) == [genesis_record()]


# ---- snapshots


def test_each_snapshot_can_be_loaded_while_it_exists(bus: Bus) -> None:
    written = [write(bus, Commit(window_record(n), state=b"state %d" % n)) for n in (1, 2, 3)]
    assert [ledger.load_state(bus, TOPICS, record) for record in written] == [b"state 1", b"state 2", b"state 3"]


def test_a_window_without_a_snapshot_has_none_to_load(bus: Bus) -> None:
    written = write(bus, Commit(window_record()))
    with pytest.raises(Incomplete, match=r"window 1 \(train\) published nothing"):
        ledger.load_state(bus, TOPICS, written)


@pytest.mark.parametrize(
    "message",
    [None, encode(StateChunk(chunk=1, count=2, window=2, data=b"x")), Message(b"1", b"garbage")],
    ids=["missing", "of a later window", "unreadable"],
)
def test_a_missing_chunk_makes_the_snapshot_incomplete(bus: Bus, message: Message | None) -> None:
    written = write(bus, Commit(window_record(), state=TWO_CHUNKS))
    replace_record(bus, "state", 1, message)
    with pytest.raises(Incomplete, match="1 of 2 state chunks of window 1 are left"):
        ledger.load_state(bus, TOPICS, written)


def test_a_changed_chunk_is_noticed(bus: Bus) -> None:
    written = write(bus, Commit(window_record(), state=TWO_CHUNKS))
    replace_record(bus, "state", 1, encode(StateChunk(chunk=1, count=2, window=1, data=b"x")))
    with pytest.raises(Incomplete, match="do not match the digest in the ledger"):
        ledger.load_state(bus, TOPICS, written)


def test_a_topic_that_was_recreated_is_an_error_not_an_endless_wait(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(ledger, "_SILENT_POLLS", 2)
    written = write(bus, Commit(window_record(), state=TWO_CHUNKS))
    truncate(bus, "state", 1)
    with pytest.raises(Incomplete, match=r"t\.state/0 ends at 1 and the ledger says 2"):
        ledger.load_state(bus, TOPICS, written)
