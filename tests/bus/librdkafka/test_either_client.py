"""It does not matter which client wrote and which one reads: the same partitions, the same windows and digests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from stream_cgzsl.bus import Bus, TopicSpec, connect
from stream_cgzsl.bus.kafka.settings import CLIENTS
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import Attribute, Feature, Genesis, encode
from stream_cgzsl.schemas.message import Message
from stream_cgzsl.windows.gather import Gatherer

NUMBERS = 16


@pytest.fixture
def buses(kafka_url: str) -> Iterator[dict[str, Bus]]:
    with ExitStack() as stack:
        sign = "&" if "?" in kafka_url else "?"
        yield {client: stack.enter_context(connect(f"{kafka_url}{sign}client={client}")) for client in CLIENTS}


def test_a_key_has_the_same_partition(buses: dict[str, Bus]) -> None:
    topic = f"either-{uuid.uuid4().hex[:12]}"
    buses[CLIENTS[0]].create([TopicSpec(topic, 7)])
    found = []
    for bus in buses.values():
        with bus.writer() as writer:
            receipts = [writer.send(topic, Message(b"class-%d" % number, b"v")) for number in range(60)]
            writer.flush()
        found.append([receipt.partition for receipt in receipts])
    assert found[0] == found[1]


def test_a_window_is_the_same(buses: dict[str, Bus]) -> None:
    """Written by both clients, on two partitions, with repeats, a bad record and the marker of a transaction."""
    topics, random = Topics(f"either-{uuid.uuid4().hex[:12]}"), np.random.default_rng(5)
    buses[CLIENTS[0]].create(topics.specs(2))
    for place, bus in enumerate(buses.values()):
        with bus.writer() as writer:
            for number in range(3):
                writer.send(topics["attributes"], encode(Attribute(class_id=f"c{number}", vector=np.ones(4))))
            for number in range(300):
                vector = random.random(NUMBERS, dtype=np.float32)
                event = Feature(class_id=f"c{number % 3}", id=f"f{(number + place) // 2}", vector=vector)
                writer.send(topics["features"], encode(event), number % 2)
            writer.send(topics["features"], Message(b"c0", b"not a vector"), 0)
    with buses[CLIENTS[0]].publisher("either") as publisher:
        publisher.begin()
        publisher.send(topics["features"], encode(Feature(class_id="c1", vector=np.ones(NUMBERS))), 1)
        publisher.commit()
    read = []
    for bus in buses.values():
        roles = ("attributes", "features")
        starts, ends = ({role: ask(topics[role]) for role in roles} for ask in (bus.begin_offsets, bus.end_offsets))
        genesis = Genesis(attributes=4, features=NUMBERS, signed=False)
        gathered = Gatherer(bus, topics, genesis, 10**9).gather(1, starts, ends, frozenset(), frozenset())
        read.append((gathered.inputs.result(), gathered.ranges, gathered.dead, set(gathered.ids)))
    assert read[0] == read[1]
    assert sum(span.accepted for span in read[0][1]["features"].values()) == 152
