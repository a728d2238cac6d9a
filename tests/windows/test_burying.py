"""Whatever is wrong with a record costs that record alone, and its dead letter tells the whole story."""

from __future__ import annotations

import hashlib
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import CLASSES, GENESIS, TOPICS, Producer, begin_ends, description, examples, new_bus, sqlite_url

from stream_cgzsl.bus import Bus
from stream_cgzsl.schemas import (
    KEPT_BYTES,
    Attribute,
    DeadLetter,
    Feature,
    Headers,
    Message,
    decode,
    encode,
    foreign_headers,
)
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


# ---- records that are well formed and do not fit the stream


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
            "Make the stream anew with --signed if your encoder gives negative numbers.",
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
def test_what_does_not_fit_the_stream_is_named(
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


def test_negative_numbers_are_fine_where_the_genesis_says_so(bus: Bus, producer: Producer) -> None:
    producer.describe(A)
    producer.events("features", Feature(class_id=A, vector=np.full(16, -1, np.float32)))
    signed = GENESIS.model_copy(update={"signed": True})
    gathered = Gatherer(bus, TOPICS, signed, 10**9).gather(1, *begin_ends(bus), frozenset(), frozenset())
    assert gathered.dead == []


# ---- records that are no events


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: f"{case.role}: {case.label}")
def test_a_hostile_record_costs_itself_alone(bus: Bus, producer: Producer, case: Any) -> None:
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


# ---- what a letter carries


def test_only_the_first_64_kb_of_a_value_are_kept_and_the_hash_is_of_all(bus: Bus, producer: Producer) -> None:
    value = np.random.default_rng(0).bytes(KEPT_BYTES + 1)
    producer.send("features", Message(b"k", value))
    letter, _ = only_letter(bus)
    assert (letter.data, letter.size, letter.sha256) == (
        value[:KEPT_BYTES],
        KEPT_BYTES + 1,
        hashlib.sha256(value).hexdigest(),
    )


def test_the_original_headers_travel_along(bus: Bus, producer: Producer) -> None:
    headers = (("trace", b"1"), ("ce_dtype", b"float32"), ("trace", b"\xff"))
    producer.send("features", Message(A.encode(), b"123", headers))
    letter, original = only_letter(bus)
    assert letter.reason == "wrong-length"
    assert original == (("original_trace", b"1"), ("original_ce_dtype", b"float32"), ("original_trace", b"\xff"))


def test_the_original_time_stays(bus: Bus, producer: Producer) -> None:
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
def test_no_record_is_too_large_to_be_buried(bus: Bus, producer: Producer, message: Message) -> None:
    producer.send("features", message)
    (buried,) = gather(bus).dead
    size = len(buried.key or b"") + len(buried.value or b"") + sum(len(n) + len(v) for n, v in buried.headers)
    assert size < 4 * KEPT_BYTES


def test_descriptions_are_dead_lettered_before_features(bus: Bus, producer: Producer) -> None:
    producer.send("features", Message(b"f", b"no"), partition=0)
    producer.send("attributes", Message(b"a", b"no"), partition=1)
    producer.events("attributes", description(A))
    assert [parsed(m).topic for m in gather(bus).dead] == [TOPICS["attributes"], TOPICS["features"]]
