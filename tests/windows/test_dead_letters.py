"""An invalid record costs nothing but itself. Its dead letter says why, and it can be sent again."""

from __future__ import annotations

import hashlib
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import CLASSES, GENESIS, TOPICS, Producer, begin_ends, description, examples, new_bus, read, sqlite_url

from stream_cgzsl.bus import Bus, Record
from stream_cgzsl.schemas import (
    KEPT_BYTES,
    Attribute,
    DeadLetter,
    Feature,
    Headers,
    InvalidEvent,
    Message,
    decode,
    encode,
    foreign_headers,
)
from stream_cgzsl.windows import dead_letters
from stream_cgzsl.windows.gather import Gathered, Gatherer

A, B = CLASSES[:2]
HOSTILE = [
    case
    for case in runpy.run_path(str(Path(__file__).parents[1] / "schemas" / "hostile_cases.py"))["CASES"]
    if case.role in ("attributes", "features")
]


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


@pytest.fixture
def producer(bus: Bus) -> Producer:
    return Producer(bus)


def gather(bus: Bus) -> Gathered:
    return Gatherer(bus, TOPICS, GENESIS, 10**9).gather(1, *begin_ends(bus), frozenset(), frozenset())


def parsed(message: Message) -> DeadLetter:
    letter = decode("dead-letters", message.key, message.value, message.headers)
    assert isinstance(letter, DeadLetter)
    return letter


def only_letter(bus: Bus) -> tuple[DeadLetter, Headers]:
    (message,) = gather(bus).dead
    return parsed(message), foreign_headers(message.headers)


# ---- valid events that do not fit the stream


@pytest.mark.parametrize(
    ("event", "reason", "detail"),
    [
        (
            Feature(class_id="stranger", vector=np.ones(16, np.float32)),
            "unknown-class",
            "the class 'stranger' is not described; expected the attributes of a class before its first feature. "
            "Send its attributes, then redrive this record.",
        ),
        (
            Feature(class_id=A, vector=np.ones(15, np.float32)),
            "wrong-dimension",
            "the vector has 15 numbers; expected 16, the stream's feature dimension since its genesis. "
            "Send vectors of the encoder this stream was made for, or make another stream.",
        ),
        (
            Feature(class_id=A, vector=np.array([1.0] * 15 + [-0.5], np.float32)),
            "negative-feature",
            "the smallest number is -0.5; expected no negative numbers: the genesis says that features are not signed. "
            "Recreate the stream with --signed if your encoder gives negative numbers.",
        ),
        (
            Attribute(class_id=A, vector=np.ones(9, np.float32)),
            "wrong-dimension",
            "the vector has 9 numbers; expected 8, the stream's attribute dimension since its genesis. "
            "Send vectors of the encoder this stream was made for, or make another stream.",
        ),
    ],
    ids=["unknown class", "feature dimension", "negative feature", "attribute dimension"],
)
def test_an_event_that_does_not_fit_the_stream_says_why(
    bus: Bus, producer: Producer, event: Any, reason: str, detail: str
) -> None:
    producer.describe(A)
    role = "features" if isinstance(event, Feature) else "attributes"
    message = encode(event)
    (receipt,) = producer.send(role, message, partition=1)
    letter, _ = only_letter(bus)
    assert letter == DeadLetter(
        key=event.class_id.encode(),
        data=message.value or b"",
        size=len(message.value or b""),
        sha256=hashlib.sha256(message.value or b"").hexdigest(),
        reason=reason,
        detail=f"{TOPICS[role]}/1 offset {receipt.offset}: {reason}: {detail}",
        topic=TOPICS[role],
        partition=1,
        offset=receipt.offset,
    )


# ---- records that are not events


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: f"{case.role}: {case.label}")
def test_a_hostile_record_costs_nothing_but_itself(bus: Bus, producer: Producer, case: Any) -> None:
    producer.describe(A)
    producer.teach(A, rows=2)
    (receipt,) = producer.send(case.role, Message(case.key, case.value, case.headers))
    producer.teach(A, rows=2, purpose=5)
    gathered = gather(bus)
    assert {c: e.count for c, e in gathered.window.features.items()} == {A: 4}
    (message,) = gathered.dead
    letter, value = parsed(message), case.value or b""
    place = f"{TOPICS[case.role]}/{receipt.partition} offset {receipt.offset}: {case.reason}: "
    assert letter.detail.startswith(place)
    assert "; expected " in letter.detail
    assert letter.model_copy(update={"detail": ""}) == DeadLetter(
        key=None if case.key is None else case.key[:KEPT_BYTES],
        data=value[:KEPT_BYTES],
        size=len(value),
        sha256=hashlib.sha256(value).hexdigest(),
        reason=case.reason,
        detail="",
        topic=TOPICS[case.role],
        partition=receipt.partition,
        offset=receipt.offset,
    )
    span = gathered.ranges[case.role][receipt.partition]
    assert span.dead == {case.reason: 1}
    assert span.accepted + 1 == span.end - span.start


def test_every_record_of_a_mixed_window_is_accounted_for(bus: Bus, producer: Producer) -> None:
    producer.describe(A, B)
    hostile = [case for case in HOSTILE if len(case.value or b"") < 10_000 and len(case.key or b"") < 10_000]
    for number, case in enumerate(hostile):
        producer.send(case.role, Message(case.key, case.value, case.headers))
        producer.events("features", *examples([A, B], 1, purpose=number % 7))  # repeats from the 8th on
    gathered = gather(bus)
    spans = [span for spans in gathered.ranges.values() for span in spans.values()]
    for span in spans:
        assert span.accepted + span.duplicate + sum(span.dead.values()) == span.end - span.start
    assert sum(span.end - span.start for span in spans) == 2 + 3 * len(hostile)
    assert sum(e.count for e in gathered.window.features.values()) == 2 * 7
    assert len(gathered.dead) == len(hostile)


# ---- what a dead letter contains


def test_the_first_64_kb_of_a_value_are_kept_and_the_hash_covers_all_of_it(bus: Bus, producer: Producer) -> None:
    value = np.random.default_rng(0).bytes(KEPT_BYTES + 1)
    producer.send("features", Message(b"k", value))
    letter, _ = only_letter(bus)
    assert (letter.data, letter.size, letter.sha256) == (
        value[:KEPT_BYTES],
        KEPT_BYTES + 1,
        hashlib.sha256(value).hexdigest(),
    )


def test_the_original_headers_are_kept(bus: Bus, producer: Producer) -> None:
    headers = (("trace", b"1"), ("ce_dtype", b"float32"), ("trace", b"\xff"))
    producer.send("features", Message(A.encode(), b"123", headers))
    letter, original = only_letter(bus)
    assert letter.reason == "wrong-length"
    assert original == (("original_trace", b"1"), ("original_ce_dtype", b"float32"), ("original_trace", b"\xff"))


def test_the_original_time_is_kept(bus: Bus, producer: Producer) -> None:
    producer.send("features", Message(A.encode(), b"123", (), 1_234_567))
    (message,) = gather(bus).dead
    assert message.timestamp_ms == 1_234_567


@pytest.mark.parametrize(
    "message",
    [
        Message(b"k" * 10**6, b"{}"),
        Message(b"k", b"{}", (("big", b"x" * 10**6), ("small", b"y"))),
        Message(b"k", b"{}", tuple((f"h{n}", b"") for n in range(50_000))),
        Message(b"k", b"{}", (("n" * 10**6, b"y"),)),
    ],
    ids=["key", "one header", "many headers", "a header's name"],
)
def test_no_record_is_too_large_for_a_dead_letter(bus: Bus, producer: Producer, message: Message) -> None:
    producer.send("features", message)
    (dead,) = gather(bus).dead
    size = len(dead.key or b"") + len(dead.value or b"") + sum(len(n) + len(v) for n, v in dead.headers)
    assert size < 4 * KEPT_BYTES


def test_dead_letters_of_descriptions_come_before_those_of_features(bus: Bus, producer: Producer) -> None:
    producer.send("features", Message(b"f", b"no"), partition=0)
    producer.send("attributes", Message(b"a", b"no"), partition=1)
    producer.events("attributes", description(A))
    assert [parsed(m).topic for m in gather(bus).dead] == [TOPICS["attributes"], TOPICS["features"]]


# ---- reading and redriving


def letter_of(message: Message) -> Message:
    """The dead letter of a feature."""
    record = Record(TOPICS["features"], 0, 7, message.timestamp_ms or 0, message.key, message.value, message.headers)
    return dead_letters.dead_letter(record, InvalidEvent("unknown-class", "found", "expected", "Do this."))


def test_a_stored_letter_knows_the_record_it_was_made_from(bus: Bus, producer: Producer) -> None:
    original = Message(b"k", b"value", (("trace", b"1"), ("ce_id", b"x")), 1_234_567)
    producer.send("dead-letters", letter_of(original))
    (stored,) = dead_letters.read(bus, TOPICS)
    assert (stored.offset, stored.original, stored.complete) == (0, original, True)
    assert (stored.letter.topic, stored.letter.offset, stored.letter.reason) == ("t.features", 7, "unknown-class")


def test_letters_are_selected_by_reason_and_foreign_records_are_skipped(bus: Bus, producer: Producer) -> None:
    gathered = [letter_of(Message(b"a", b"1")), Message(b"?", b"?"), letter_of(Message(b"b", b""))]
    producer.send("features", Message(A.encode(), b"not JSON"))
    producer.send("dead-letters", *gathered, *gather(bus).dead)
    assert [stored.letter.reason for stored in dead_letters.read(bus, TOPICS)] == [
        "unknown-class",
        "unknown-class",
        "not-json",
    ]
    assert [stored.original.key for stored in dead_letters.read(bus, TOPICS, ["not-json"])] == [A.encode()]


def test_a_record_is_redriven_once(bus: Bus, producer: Producer) -> None:
    originals = [Message(b"a", b"1", (("h", b"x"),), 1_000), Message(b"b", b"2", (), 2_000)]
    producer.send("dead-letters", *map(letter_of, originals))
    assert dead_letters.redrive(bus, TOPICS, dead_letters.read(bus, TOPICS)) == (2, 0)
    assert dead_letters.redrive(bus, TOPICS, dead_letters.read(bus, TOPICS)) == (0, 0)
    sent = [Message(r.key, r.value, r.headers, r.timestamp_ms) for r in read(bus, TOPICS["features"])]
    assert sorted(sent) == originals


def test_a_record_of_which_only_a_part_was_kept_is_not_redriven(bus: Bus, producer: Producer) -> None:
    producer.send("dead-letters", letter_of(Message(b"a", bytes(KEPT_BYTES + 1))))
    (stored,) = dead_letters.read(bus, TOPICS)
    assert (stored.complete, dead_letters.redrive(bus, TOPICS, [stored])) == (False, (0, 1))
    assert (read(bus, TOPICS["features"]), list(dead_letters.read(bus, TOPICS))) == ([], [stored])


def test_a_record_that_no_client_could_read_is_not_redriven(bus: Bus, producer: Producer) -> None:
    """Nothing of it was kept."""
    letter = parsed(letter_of(Message(None, None)))
    producer.send("dead-letters", encode(letter.model_copy(update={"reason": "unreadable"})))
    assert dead_letters.redrive(bus, TOPICS, dead_letters.read(bus, TOPICS)) == (0, 1)
    assert read(bus, TOPICS["features"]) == []
