"""What other people's producers send through a real broker: compressed, hostile or damaged."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers import CLASSES, GENESIS, Producer, begin_ends
from kafka import KafkaProducer
from patience import until

from stream_cgzsl.bus import Bus, Reader, Record, Subscription, TopicPartition, TopicSpec, connect
from stream_cgzsl.bus.kafka.bus import KafkaBus
from stream_cgzsl.bus.kafka.codecs import LIMIT_BYTES
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import DeadLetter, decode
from stream_cgzsl.schemas.message import UNREADABLE
from stream_cgzsl.serving.answers import Answerer
from stream_cgzsl.windows.gather import Gatherer


class NotUtf8(str):
    """A header name that the client sends as bytes that are no text."""

    def encode(self, *_: Any) -> bytes:
        return b"\xff\xfe"


@pytest.fixture
def bus(kafka_url: str) -> Iterator[KafkaBus]:
    with connect(kafka_url) as connected:
        assert isinstance(connected, KafkaBus)
        yield connected


@pytest.fixture
def topic(bus: Bus) -> str:
    name = f"codecs-{uuid.uuid4().hex[:12]}"
    bus.create([TopicSpec(name)])
    return name


def produce(bus: KafkaBus, codec: str | None, send: Callable[[KafkaProducer], None]) -> None:
    """What `send` sends before it flushes is one batch."""
    settings = {**bus.settings.admin(), "max_request_size": 2**30, "batch_size": 2**30, "linger_ms": 10_000}
    producer = KafkaProducer(**settings, compression_type=codec)
    send(producer)
    producer.close()


def read(source: Reader | Subscription, count: int) -> list[Record]:
    found: list[Record] = []

    def enough() -> bool:
        found.extend(source.poll(1.0))
        return len(found) >= count

    until(enough)
    return found


def read_both(bus: Bus, topic: str, count: int) -> list[Record]:
    """By a reader and by a member of a group, who must see the same."""
    with bus.reader({TopicPartition(topic, 0): 0}) as reader, bus.subscribe(topic, topic) as member:
        records = read(reader, count)
        assert read(member, count) == records
        assert reader.position(TopicPartition(topic, 0)) == bus.end_offsets(topic)[0]
        return records


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_of_kafka_is_read(bus: KafkaBus, topic: str, codec: str) -> None:
    values = [b"%d" % number * 100 for number in range(200)]
    produce(bus, codec, lambda producer: [producer.send(topic, value, b"k") for value in values])
    assert [record.value for record in read_both(bus, topic, 200)] == values


def test_a_bomb_and_a_damaged_record_cost_only_themselves(bus: KafkaBus, topic: str) -> None:
    def send_bomb(producer: KafkaProducer) -> None:
        for value in (b"x", bytes(LIMIT_BYTES), b"y"):
            producer.send(topic, value, b"k")

    def send_damaged(producer: KafkaProducer) -> None:
        for headers in ([], [(NotUtf8("n"), b"")], []):
            producer.send(topic, b"v", b"k", headers)

    produce(bus, "gzip", send_bomb)
    produce(bus, None, send_damaged)
    records = read_both(bus, topic, 6)
    assert [(r.offset, r.value) for r in records] == [(0, None), (1, None), (2, None), (3, b"v"), (4, None), (5, b"v")]
    assert [name for r in records for name, _ in r.headers] == [UNREADABLE] * 4


def test_a_bomb_in_a_window_becomes_dead_letters_and_in_samples_is_answered(bus: KafkaBus) -> None:
    topics = Topics(f"codecs-{uuid.uuid4().hex[:12]}")
    bus.create(topics.specs())
    producer = Producer(bus, topics)
    producer.describe(*CLASSES[:2])
    producer.teach(CLASSES[0], rows=2)
    bomb = bytes(LIMIT_BYTES + 1)
    produce(bus, "zstd", lambda client: [client.send(topics["features"], value, b"k") for value in (b"x", bomb)])
    producer.teach(CLASSES[1], rows=2)
    begins, ends = begin_ends(bus, topics)
    gathered = Gatherer(bus, topics, GENESIS, 10**9).gather(1, begins, ends, frozenset(), frozenset())
    (span,) = gathered.ranges["features"].values()
    assert (span.start, span.end, span.accepted, span.dead) == (0, 6, 4, {"unreadable": 2})
    letters = [decode("dead-letters", None, message.value, message.headers) for message in gathered.dead]
    assert [letter.offset for letter in letters if isinstance(letter, DeadLetter)] == [2, 3]
    with bus.reader({TopicPartition(topics["features"], 0): 2}) as reader:
        answered = Answerer(None, GENESIS, None).answer(read(reader, 4)[:2])
    assert (answered.statuses["invalid"], len(answered.predictions), len(answered.dead)) == (2, 2, 2)


def test_many_batches_just_below_the_limit_are_not_returned_at_once(bus: KafkaBus, topic: str) -> None:
    value = bytes(LIMIT_BYTES // 40)
    for _ in range(6):
        produce(bus, "zstd", lambda producer: [producer.send(topic, value, b"k") for _ in range(30)])
    polled: list[int] = []
    with bus.reader({TopicPartition(topic, 0): 0}) as reader:
        while sum(polled) < 180:
            polled.append(len(reader.poll(5.0)))
    assert max(polled) < 60, "a poll returned more than 32 MiB and a few records"
