"""The lowest (partition, offset) with an id wins, in whatever order partitions are delivered, without reading twice."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from helpers import CLASSES, GENESIS, TOPICS, assert_same_window

from stream_cgzsl.bus import Record
from stream_cgzsl.schemas import Feature, Range, encode
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.reading import OutOfOrder, Reading

PARTITIONS, LATE_BEFORE = 3, 500
A, B = CLASSES[:2]


def records(seed: int) -> list[list[Record]]:
    """Per partition; most ids are there several times, with other vectors and times, but always with one class."""
    random = np.random.default_rng(seed)
    logs: list[list[Record]] = []
    for partition in range(PARTITIONS):
        numbers = random.integers(0, 40, 60)
        log = []
        for offset, number in enumerate(numbers):
            event = Feature(class_id=(A, B)[number % 2], vector=random.random(16, np.float32), id=f"id {number}")
            message = encode(event)
            time = int(random.integers(0, 1000))
            log.append(Record("t", partition, offset, time, message.key, message.value, message.headers))
        logs.append(log)
    return logs


def read(batches: list[list[Record]], budget: int) -> Gathered:
    reading = Reading(TOPICS, GENESIS, frozenset(), LATE_BEFORE, None)
    tallies = {p: reading.open("features", p, 0, 60) for p in range(PARTITIONS)}
    reading.begin_features(frozenset([A, B]), budget, 60 * PARTITIONS)
    for batch in batches:
        reading.take_features(batch, tallies)
    return reading.finish(1)


def mixed(logs: list[list[Record]], seed: int) -> list[list[Record]]:
    """The records in batches of seven, in a random order that keeps each partition's own."""
    random = np.random.default_rng(seed)
    logs = [list(log) for log in logs]
    order = [logs[p].pop(0) for p in random.permutation(np.repeat(range(PARTITIONS), 60))]
    return [order[start : start + 7] for start in range(0, len(order), 7)]


@pytest.mark.parametrize("budget", [1000, 10], ids=["all kept", "few kept"])
@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_partitions_does_not_matter(seed: int, budget: int) -> None:
    logs = records(seed)
    in_order = read(logs, budget)
    other = read(mixed(logs, seed), budget)
    assert_same_window(in_order, other)
    assert (other.ranges, other.ids) == (in_order.ranges, in_order.ids)


def test_a_record_that_turns_out_to_be_a_repeat_is_counted_as_one() -> None:
    first, second, third = (log[:1] for log in records(3))
    same = [one[0]._replace(headers=first[0].headers, key=first[0].key) for one in (first, second, third)]
    ranges = read([[same[2]], [same[0]], [same[1]]], 1000).ranges["features"]
    late = int(same[0].timestamp_ms < LATE_BEFORE)
    assert ranges == {
        0: Range(start=0, end=60, accepted=1, late=late),
        1: Range(start=0, end=60, duplicate=1),
        2: Range(start=0, end=60, duplicate=1),
    }


def test_one_id_with_two_classes_asks_for_partitions_in_their_order() -> None:
    offsets = count()
    messages = [encode(Feature(class_id=c, vector=np.ones(16, np.float32), id="same")) for c in (A, B)]
    a, b = (Record("t", p, next(offsets), 0, m.key, m.value, m.headers) for p, m in zip((1, 0), messages, strict=True))
    with pytest.raises(OutOfOrder, match="partitions 0 and 1 have records with the same id"):
        read([[a], [b]], 1000)
