"""A commit is visible whole or not at all, comes back as it was, and whoever changed it is found out."""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import TOPICS, new_bus, read, sqlite_url
from patience import PATIENCE_SECONDS

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.sqlite_file import OFFSET_BITS, pack_headers
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger, Fenced
from stream_cgzsl.generation import Generation
from stream_cgzsl.schemas import (
    CHUNK_BYTES,
    Genesis,
    LedgerRecord,
    Message,
    Projection,
    Range,
    StateChunk,
    Withdrawal,
    decode,
    encode,
)
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.commit import Commit, publish
from stream_cgzsl.windows.ledger import Incomplete

NAMES = {"a": "ant", "b": "bee", "c": "cat"}


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


def generation(number: int = 1, classes: str = "abc", features: int = 4) -> Generation:
    rng = np.random.default_rng(number)
    return Generation(
        number,
        tuple(classes),
        np.arange(len(classes)) % 2 == 0,
        rng.normal(size=(len(classes), features)).astype(np.float32),
        rng.normal(size=len(classes)).astype(np.float32),
        rng.normal(size=features).astype(np.float32),
        transform="sqrt",
        calibration={"offset": 0.1 + 0.2, "evidence": [1, 2.5]},
    )


def record(number: int = 1, **changes: Any) -> LedgerRecord:
    fields: dict[str, Any] = {
        "number": number,
        "kind": "train",
        "reason": "task",
        "ranges": {
            "attributes": {0: Range(start=0, end=number), 1: Range(start=0, end=0)},
            "features": {0: Range(start=0, end=10 * number, accepted=10 * number), 1: Range(start=0, end=0)},
            "control": {0: Range(start=number - 1, end=number, accepted=1)},
        },
        "configuration_digest": "0" * 64,
        "code": "0.1",
    }
    return LedgerRecord(**{**fields, **changes})


def genesis() -> LedgerRecord:
    return LedgerRecord(
        number=0,
        kind="genesis",
        reason="genesis",
        genesis=Genesis(attributes=2, features=4, signed=False),
        configuration_digest="0" * 64,
        code="0.1",
    )


def committed(bus: Bus, commit: Commit, topics: Topics = TOPICS) -> LedgerRecord:
    with bus.publisher(f"{topics.prefix}.learner") as publisher:
        return publish(publisher, topics, commit)


def contents(bus: Bus) -> dict[str, int]:
    return {role: len(read(bus, TOPICS[role])) for role in ("windows", "projections", "state", "dead-letters")}


# ---- a commit comes back as it was


def test_a_commit_comes_back_as_it_was(bus: Bus) -> None:
    state = np.random.default_rng(0).bytes(2 * CHUNK_BYTES + 1)
    made = generation()
    letter = Message(b"k", b"v", (("h", b"1"),))
    written = committed(bus, Commit(record(), made, NAMES, ["z", "y"], state, [letter]))
    assert ledger.read_last(bus, TOPICS)[0] == written
    assert written.generation == made.digest
    assert ledger.load_generation(bus, TOPICS, written).digest == made.digest
    assert ledger.load_state(bus, TOPICS, written) == state
    assert [(r.key, r.value, r.headers) for r in read(bus, TOPICS["dead-letters"])] == [letter[:3]]
    assert contents(bus) == {"windows": 1, "projections": 5, "state": 3, "dead-letters": 1}


def test_projections_carry_what_a_stranger_needs(bus: Bus) -> None:
    made = generation()
    committed(bus, Commit(record(), made, NAMES, ["y"]))
    events = [decode("projections", r.key, r.value, r.headers) for r in read(bus, TOPICS["projections"])]
    assert events == [
        Withdrawal(class_id="y"),
        *(
            Projection(
                class_id=c,
                vector=made.vectors[i],
                bias=float(made.biases[i]),
                seen=bool(made.seen[i]),
                generation=1,
                name=NAMES[c],
            )
            for i, c in enumerate("abc")
        ),
    ]


@pytest.mark.parametrize("made", [generation(classes=""), generation(classes="a")], ids=["no class", "one class"])
def test_small_generations_come_back_too(bus: Bus, made: Generation) -> None:
    written = committed(bus, Commit(record(), made))
    assert ledger.load_generation(bus, TOPICS, written).digest == made.digest


def test_consumed_offsets_are_told_to_lag_tools(bus: Bus) -> None:
    committed(bus, Commit(record(3), generation(3)))
    assert {role: bus.committed("t.learner", TOPICS[role]) for role in ("attributes", "features", "control")} == {
        "attributes": {0: 3, 1: 0},
        "features": {0: 30, 1: 0},
        "control": {0: 3},
    }


def test_each_generation_can_be_loaded_while_it_is_there(bus: Bus) -> None:
    written = [committed(bus, Commit(record(n), generation(n), NAMES, (), b"state %d" % n)) for n in (1, 2, 3)]
    assert [ledger.load_generation(bus, TOPICS, w).number for w in written] == [1, 2, 3]
    assert [ledger.load_state(bus, TOPICS, w) for w in written] == [b"state 1", b"state 2", b"state 3"]


def test_what_a_window_did_not_publish_is_incomplete(bus: Bus) -> None:
    written = committed(bus, Commit(record(), generation()))
    with pytest.raises(Incomplete, match=r"window 1 \(train\) published nothing"):
        ledger.load_state(bus, TOPICS, written)


# ---- whole or not at all


def test_a_commit_that_fails_half_way_shows_nothing_and_the_next_one_works(bus: Bus) -> None:
    def failing() -> Iterator[Message]:
        yield Message(b"k", b"v")
        raise RuntimeError("half way")

    with bus.publisher("t.learner") as publisher:
        with pytest.raises(RuntimeError, match="half way"):
            publish(publisher, TOPICS, Commit(record(), generation(), NAMES, (), b"state", failing()))
        assert contents(bus) == {"windows": 0, "projections": 0, "state": 0, "dead-letters": 0}
        publish(publisher, TOPICS, Commit(record(), generation(), NAMES, (), b"state"))
    assert contents(bus) == {"windows": 1, "projections": 3, "state": 1, "dead-letters": 0}


def test_a_learner_that_was_replaced_can_commit_nothing(bus: Bus) -> None:
    with bus.publisher("t.learner") as older, bus.publisher("t.learner") as newer:
        with pytest.raises(Fenced):
            publish(older, TOPICS, Commit(record(), generation()))
        publish(newer, TOPICS, Commit(record(), generation(classes="ab")))
    assert contents(bus) == {"windows": 1, "projections": 2, "state": 0, "dead-letters": 0}


# ---- reading the ledger


def test_the_whole_ledger_is_read_in_order(bus: Bus) -> None:
    written = [committed(bus, Commit(genesis())), *(committed(bus, Commit(record(n), generation(n))) for n in (1, 2))]
    assert ledger.read_all(bus, TOPICS) == written


def test_an_empty_ledger_has_no_last_record(bus: Bus) -> None:
    assert ledger.read_last(bus, TOPICS) == (None, 0)
    assert ledger.read_all(bus, TOPICS) == []


@pytest.mark.parametrize("numbers", [(0, 2), (1,), (0, 0), (0, 1, 1)])
def test_a_ledger_whose_numbers_do_not_follow_is_broken(bus: Bus, numbers: tuple[int, ...]) -> None:
    with bus.writer() as writer:
        for number in numbers:
            writer.send(TOPICS["windows"], encode(record(number + 1).model_copy(update={"number": number})))
    with pytest.raises(BrokenLedger, match=r"t\.windows has record \d where record \d should be"):
        ledger.read_all(bus, TOPICS)


def test_a_stranger_in_the_ledger_is_named_with_its_place(bus: Bus) -> None:
    committed(bus, Commit(genesis()))
    with bus.writer() as writer:
        writer.send(TOPICS["windows"], Message(b"1", b"hello"))
    for reading in (ledger.read_all, ledger.read_last):
        with pytest.raises(BrokenLedger, match=r"t\.windows/0 offset 1: not-json.*Only learners may write"):
            reading(bus, TOPICS)


def test_the_last_record_costs_the_same_however_long_the_ledger_is(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    with bus.writer() as writer:
        for number in range(500):
            writer.send(TOPICS["windows"], encode(genesis().model_copy(update={"number": number})))
    spans = []
    original = ledger.read_range

    def counted(bus: Bus, topic: str, start: int, end: int) -> Iterator[Any]:
        spans.append(end - start)
        return original(bus, topic, start, end)

    monkeypatch.setattr(ledger, "read_range", counted)
    last, end = ledger.read_last(bus, TOPICS)
    assert last is not None and (last.number, end) == (499, 500)
    assert sum(spans) <= 4


def test_the_last_record_is_found_behind_many_aborted_commits(kafka_url: str) -> None:
    topics = Topics(f"ledger-{uuid.uuid4().hex[:8]}")
    with new_bus(kafka_url, 1, topics) as bus:
        committed(bus, Commit(genesis()), topics)
        with bus.publisher(f"{topics.prefix}.learner") as publisher:
            for _ in range(20):
                publisher.begin()
                publisher.send(topics["windows"], encode(record()))
                publisher.flush()
                publisher.abort()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while bus.end_offsets(topics["windows"])[0] < 42 and time.monotonic() < deadline:
            time.sleep(0.05)  # the last abort is decided before every partition has learned of it
        assert ledger.read_last(bus, topics) == (genesis(), 42)
        assert ledger.read_all(bus, topics) == [genesis()]


# ---- tampering


def forge(bus: Bus, role: str, offset: int, message: Message | None) -> None:
    """Puts another record in the place of one, or none, behind the bus's back."""
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


def projection(**changes: Any) -> Message:
    made = generation()
    fields = {"class_id": "b", "vector": made.vectors[1], "bias": float(made.biases[1]), "seen": False, "generation": 1}
    return encode(Projection(**{**fields, **changes}))


def test_an_unchanged_projection_is_not_complained_about(bus: Bus) -> None:
    written = committed(bus, Commit(record(), generation()))
    forge(bus, "projections", 1, projection(name="a name is not in the digest"))
    assert ledger.load_generation(bus, TOPICS, written).digest == written.generation


@pytest.mark.parametrize(
    "change",
    [
        {"vector": np.ones(4, np.float32)},
        {"vector": np.ones(5, np.float32)},
        {"bias": 0.0},
        {"seen": True},
        {"class_id": "c"},
        {"class_id": "bb"},
    ],
    ids=["vector", "length", "bias", "seen", "a class twice", "another class"],
)
def test_a_changed_projection_is_found_out(bus: Bus, change: dict[str, Any]) -> None:
    written = committed(bus, Commit(record(), generation()))
    forge(bus, "projections", 1, projection(**change))
    with pytest.raises(BrokenLedger, match=r"generation 1 .*changed by someone else: check who may write to them"):
        ledger.load_generation(bus, TOPICS, written)


@pytest.mark.parametrize(
    "message",
    [None, projection(generation=2), encode(Withdrawal(class_id="b")), Message(b"b", b"garbage")],
    ids=["gone", "of a later generation", "withdrawn", "unreadable"],
)
def test_a_missing_projection_makes_the_generation_incomplete(bus: Bus, message: Message | None) -> None:
    written = committed(bus, Commit(record(), generation()))
    forge(bus, "projections", 1, message)
    with pytest.raises(Incomplete, match="2 of 3 projections of generation 1 are left"):
        ledger.load_generation(bus, TOPICS, written)


@pytest.mark.parametrize(
    "message",
    [
        None,
        encode(StateChunk(chunk=1, count=2, window=2, data=b"x")),
        Message(b"1", b"garbage"),
    ],
    ids=["gone", "of a later window", "unreadable"],
)
def test_a_missing_chunk_makes_the_snapshot_incomplete(bus: Bus, message: Message | None) -> None:
    written = committed(bus, Commit(record(), generation(), state=bytes(CHUNK_BYTES + 1)))
    forge(bus, "state", 1, message)
    with pytest.raises(Incomplete, match="1 of 2 state chunks of window 1 are left"):
        ledger.load_state(bus, TOPICS, written)


def test_a_changed_chunk_is_not_taken_for_the_snapshot(bus: Bus) -> None:
    written = committed(bus, Commit(record(), generation(), state=bytes(CHUNK_BYTES + 1)))
    forge(bus, "state", 1, encode(StateChunk(chunk=1, count=2, window=1, data=b"x")))
    with pytest.raises(Incomplete, match="do not have the digest"):
        ledger.load_state(bus, TOPICS, written)


def test_a_topic_that_lost_its_end_is_an_error_not_a_wait(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a topic was deleted and made anew: what the ledger points to will never come."""
    monkeypatch.setattr(ledger, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(ledger, "_SILENT_POLLS", 2)
    written = committed(bus, Commit(record(), generation(), state=b"state"))
    with closing(sqlite3.connect(bus.url.removeprefix("sqlite:///"))) as db, db:
        db.execute("DELETE FROM records WHERE key IN (CAST('b' AS BLOB), CAST('c' AS BLOB))")
        db.execute("UPDATE partitions SET next = 1 WHERE topic = ?", (TOPICS["projections"],))
    with pytest.raises(Incomplete, match=r"t\.projections/0 ends at 1 and the ledger says 3"):
        ledger.load_generation(bus, TOPICS, written)
