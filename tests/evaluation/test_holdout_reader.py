"""The holdout from the bus: up to a cut, each record once, the unusable ones with their reason."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from helpers import GENESIS, Producer

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.evaluation.holdout import Holdout
from stream_cgzsl.evaluation.holdout_reader import HoldoutReader
from stream_cgzsl.schemas import DeadLetter, Encoding, Message, decode
from stream_cgzsl.schemas import Holdout as Event


@dataclass
class Stream:
    bus: Bus
    topics: Topics

    def send(self, partition: int, *numbers: float, class_id: str = "a", encoding: Encoding = "binary") -> None:
        """One record per number, which is the first of its vector."""
        events = (Event(class_id=class_id, id=f"{class_id}{n}", vector=vector(n)) for n in numbers)
        Producer(self.bus, self.topics, encoding).events("holdout", *events, partition=partition)

    def spoil(self, partition: int, *values: bytes) -> None:
        messages = (Message(b"a", value) for value in values)
        Producer(self.bus, self.topics).send("holdout", *messages, partition=partition)

    def reader(self) -> tuple[HoldoutReader, Holdout]:
        rows = Holdout(16, 10**6)
        return HoldoutReader(self.bus, self.topics, GENESIS, rows), rows


def vector(first: float) -> Any:
    return np.array([first, *([1.0] * 15)], np.float32)


def kept(rows: Holdout) -> dict[str, list[float]]:
    return {class_id: sorted(float(row[0]) for row in given) for class_id, given in rows.rows().items()}


@pytest.fixture
def stream(bus: Bus) -> Iterator[Stream]:
    topics = Topics(f"f{uuid.uuid4().hex[:10]}")
    bus.create(topics.specs(2))
    yield Stream(bus, topics)


def test_cut_after_cut(stream: Stream) -> None:
    stream.send(0, 1, 2, 3)
    stream.send(1, 4, 5, class_id="b", encoding="json")
    reader, rows = stream.reader()
    assert reader.lag() == 5
    reader.read_to({0: 2, 1: 0})
    assert (kept(rows), reader.lag()) == ({"a": [1, 2]}, 3)
    reader.read_to({0: 2, 1: 2})
    assert (kept(rows), reader.lag()) == ({"a": [1, 2], "b": [4, 5]}, 1)
    stream.send(0, 6)
    reader.read_to({0: 4, 1: 2})
    assert (kept(rows), reader.lag()) == ({"a": [1, 2, 3, 6], "b": [4, 5]}, 0)


def test_unusable_records_have_a_reason_once(stream: Stream) -> None:
    stream.spoil(0, b"?", b'{"vector": [1]}')
    stream.send(0, 1, -2)
    stream.spoil(1, b'{"vector": [NaN]}')
    reader, rows = stream.reader()
    reader.read_to({0: 1, 1: 1})
    reader.read_to({0: 4, 1: 1})
    reasons = ["not-json", "wrong-dimension", "negative-feature", "not-finite"]
    assert ([unusable.reason for unusable in reader.unusable()], kept(rows)) == (reasons, {"a": [1]})
    letter = decode("dead-letters", *reader.unusable()[1].letter[:3])
    assert isinstance(letter, DeadLetter)
    assert (letter.topic, letter.partition, letter.offset) == (stream.topics["holdout"], 0, 1)
    assert letter.detail.endswith("Send vectors of the encoder this stream was made for, or make another stream.")
    reader.clear_unusable()
    stream.spoil(0, b"?")
    reader.read_to({0: 5, 1: 1})
    assert [unusable.reason for unusable in reader.unusable()] == ["not-json"]


def test_a_record_is_dead_lettered_once(stream: Stream) -> None:
    stream.spoil(0, b"?", b"??")
    stream.spoil(1, b"???")
    reader, _ = stream.reader()
    reader.dead_lettered = {0: 1}
    reader.read_to({0: 2, 1: 1})
    letters = [unusable.letter for unusable in reader.unusable()]
    assert [letter.value for letter in letters] == [b"??", b"???"]


def test_reading_can_be_stopped(stream: Stream) -> None:
    stream.send(0, 1, 2)
    reader, _ = stream.reader()

    def alive() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        reader.read_to({0: 2}, alive)
    reader.read_to({0: 0})
    assert reader.lag() == 2
