"""One record in a hundred is invalid, each in another way: each gets a dead letter, and nothing else changes."""

from __future__ import annotations

import random
import runpy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from guarded import A, B, C, Result, Stream, new_stream
from helpers import examples, letters

from stream_cgzsl.bus import Receipt
from stream_cgzsl.schemas import Attribute, Boundary, Feature, Message, Rollback, encode

LARGEST = 1_000_000  # bytes that every bus accepts


class Sent(NamedTuple):
    """A record to send, and the reason of its dead letter; without a reason it is valid."""

    role: str
    reason: str
    message: Message


def unfit(role: str, reason: str, event: Any) -> Sent:
    return Sent(role, reason, encode(event))


UNFIT = [
    unfit("features", "unknown-class", Feature(class_id="stranger", vector=np.ones(16, np.float32))),
    unfit("features", "wrong-dimension", Feature(class_id=A, vector=np.ones(17, np.float32))),
    unfit("features", "negative-feature", Feature(class_id=A, vector=np.full(16, -1, np.float32))),
    unfit("attributes", "wrong-dimension", Attribute(class_id=A, vector=np.ones(9, np.float32))),
    unfit("control", "cut-beyond-end", Boundary(cut={"features": {99: 1}})),
    unfit("control", "unknown-generation", Rollback(to=10**6)),
]
HOSTILE = [
    Sent(case.role, case.reason, Message(case.key, case.value, case.headers))
    for case in runpy.run_path(str(Path(__file__).parents[1] / "schemas" / "hostile_cases.py"))["CASES"]
    if case.role in ("attributes", "features", "control")
    and len(case.value or b"") + len(case.key or b"") + sum(len(v) for _, v in case.headers) < LARGEST
]
INVALID = UNFIT + HOSTILE
ROWS = 100 * len(INVALID) // 6  # of each of three classes in each of two tasks

Place = tuple[str, int, int, str]


def feed(stream: Stream, invalid: list[Sent]) -> list[Place]:
    """Two tasks of valid records with the invalid ones among them. Returns where those are, and their reasons."""
    dice = random.Random(1)
    dead: list[Place] = []
    for task in (1, 2):
        stream.producer.describe(A, B, C)
        valid = [encode(event) for event in examples((A, B, C), ROWS, purpose=task)]
        mixed = [*(Sent("features", "", message) for message in valid), *invalid[task - 1 :: 2]]
        dice.shuffle(mixed)
        dead += _send(stream, mixed)
        stream.producer.boundary(f"task {task}")
    return dead


def _send(stream: Stream, records: list[Sent]) -> list[Place]:
    """Sends records in this order, also across topics."""
    sent: list[tuple[Sent, Receipt]] = []
    with stream.bus.writer() as writer:
        for record in records:
            sent.append((record, writer.send(stream.topics[record.role], record.message)))
        writer.flush()
    return [(stream.topics[b.role], r.partition, r.offset, b.reason) for b, r in sent if b.reason]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """The results of the same tasks without invalid records."""
    directory = tmp_path_factory.mktemp("clean")
    with new_stream(f"sqlite:///{directory / 'bus.db'}", directory) as stream:
        feed(stream, [])
        stream.learn_until(2)
        return stream.results()


def test_invalid_records_become_dead_letters_and_change_no_digest(stream: Stream, clean: list[Result]) -> None:
    dead = feed(stream, INVALID)
    assert len(dead) == len(INVALID)
    stream.learn_until(2)
    found = [
        (letter.topic, letter.partition, letter.offset, letter.reason) for letter in letters(stream.bus, stream.topics)
    ]
    assert sorted(found) == sorted(dead)
    assert stream.results() == clean
    assert stream.check().problems == []
