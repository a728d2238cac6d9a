"""One record in a hundred is bad, in every way there is: each is buried with its reason, and nothing else changes."""

from __future__ import annotations

import random
import runpy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from guarded import A, B, C, Stream, Told, new_stream
from helpers import examples, letters

from stream_cgzsl.bus import Receipt
from stream_cgzsl.schemas import Attribute, Boundary, Feature, Message, Rollback, encode

LARGEST = 1_000_000  # what any bus takes


class Bad(NamedTuple):
    role: str
    reason: str
    message: Message


def unfit(role: str, reason: str, event: Any) -> Bad:
    return Bad(role, reason, encode(event))


UNFIT = [
    unfit("features", "unknown-class", Feature(class_id="stranger", vector=np.ones(16, np.float32))),
    unfit("features", "wrong-dimension", Feature(class_id=A, vector=np.ones(17, np.float32))),
    unfit("features", "negative-feature", Feature(class_id=A, vector=np.full(16, -1, np.float32))),
    unfit("attributes", "wrong-dimension", Attribute(class_id=A, vector=np.ones(9, np.float32))),
    unfit("control", "cut-beyond-end", Boundary(cut={"features": {0: 10**9}})),
    unfit("control", "unknown-generation", Rollback(to=10**6)),
]
HOSTILE = [
    Bad(case.role, case.reason, Message(case.key, case.value, case.headers))
    for case in runpy.run_path(str(Path(__file__).parents[1] / "schemas" / "hostile_cases.py"))["CASES"]
    if case.role in ("attributes", "features", "control")
    and len(case.value or b"") + len(case.key or b"") + sum(len(v) for _, v in case.headers) < LARGEST
]
BAD = UNFIT + HOSTILE
ROWS = 100 * len(BAD) // 6  # of each of three classes in each of two tasks

Place = tuple[str, int, int, str]


def feed(stream: Stream, bad: list[Bad]) -> list[Place]:
    """Two tasks of good records, a hundred for each bad one mixed in. Returns where the bad ones stand, and why."""
    dice = random.Random(1)
    buried: list[Place] = []
    for task in (1, 2):
        stream.producer.describe(A, B, C)
        good = [encode(event) for event in examples((A, B, C), ROWS, purpose=task)]
        mixed = [*(Bad("features", "", message) for message in good), *bad[task - 1 :: 2]]
        dice.shuffle(mixed)
        buried += _send(stream, mixed)
        stream.producer.boundary(f"task {task}")
    return buried


def _send(stream: Stream, records: list[Bad]) -> list[Place]:
    """In this order, also over the topics."""
    sent: list[tuple[Bad, Receipt]] = []
    with stream.bus.writer() as writer:
        for record in records:
            sent.append((record, writer.send(stream.topics[record.role], record.message)))
        writer.flush()
    return [(stream.topics[b.role], r.partition, r.offset, b.reason) for b, r in sent if b.reason]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    """The same tasks without a bad record."""
    directory = tmp_path_factory.mktemp("clean")
    with new_stream(f"sqlite:///{directory / 'bus.db'}", directory) as stream:
        feed(stream, [])
        stream.learn_until(2)
        return stream.told()


def test_bad_records_are_buried_and_change_no_digest(stream: Stream, clean: list[Told]) -> None:
    buried = feed(stream, BAD)
    assert len(buried) == len(BAD)
    stream.learn_until(2)
    found = [
        (letter.topic, letter.partition, letter.offset, letter.reason) for letter in letters(stream.bus, stream.topics)
    ]
    assert sorted(found) == sorted(buried)
    assert stream.told() == clean
    assert stream.check().problems == []
