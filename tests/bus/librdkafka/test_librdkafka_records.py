"""What any producer may send, as librdkafka brings it: nothing ends the process or stops a reader."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import KafkaProducer
from patience import until

from stream_cgzsl.bus import Bus, Reader, Record, Subscription, TopicPartition, TopicSpec, connect
from stream_cgzsl.bus.kafka.codecs import LIMIT_BYTES
from stream_cgzsl.bus.kafka.settings import MAX_RECORD_BYTES
from stream_cgzsl.bus.librdkafka.bus import LibrdkafkaBus
from stream_cgzsl.schemas.message import UNREADABLE, Message


class NotUtf8(str):
    """A header name that the client sends as bytes that are no text."""

    def encode(self, *_: Any) -> bytes:
        return b"\xff\xfe"


@pytest.fixture
def bus(kafka_url: str) -> Iterator[LibrdkafkaBus]:
    with connect(f"{kafka_url}{'&' if '?' in kafka_url else '?'}client=librdkafka") as connected:
        assert isinstance(connected, LibrdkafkaBus)
        yield connected


@pytest.fixture
def topic(bus: Bus) -> str:
    name = f"librdkafka-{uuid.uuid4().hex[:12]}"
    bus.create([TopicSpec(name)])
    return name


def produce(bus: LibrdkafkaBus, codec: str | None, send: Callable[[KafkaProducer], None]) -> None:
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
def test_every_codec_of_kafka_is_read(bus: LibrdkafkaBus, topic: str, codec: str) -> None:
    values = [b"%d" % number * 100 for number in range(200)]
    produce(bus, codec, lambda producer: [producer.send(topic, value, b"k") for value in values])
    assert [record.value for record in read_both(bus, topic, 200)] == values


def test_names_that_are_not_utf8_cost_only_their_records(bus: LibrdkafkaBus, topic: str) -> None:
    bad = [("a", b"1"), (NotUtf8("n"), b""), ("b", b"2")]

    def send(producer: KafkaProducer) -> None:
        for number in range(300):  # enough for Python to take its short cuts
            producer.send(topic, b"%d" % number, b"k", bad if number % 100 == 50 else [("a", b"1")])

    produce(bus, None, send)
    records = read_both(bus, topic, 300)
    assert [record.offset for record in records if record.value is None] == [50, 150, 250]
    assert {name for record in records if record.value is None for name, _ in record.headers} == {UNREADABLE}
    assert [int(record.value) for record in records if record.value is not None] == [
        number for number in range(300) if number % 100 != 50
    ]


def test_a_record_that_is_too_large_when_decompressed(bus: LibrdkafkaBus, topic: str) -> None:
    def send(producer: KafkaProducer) -> None:
        for value in (b"x", bytes(MAX_RECORD_BYTES + 1), b"y"):
            producer.send(topic, value, b"k")

    produce(bus, "gzip", send)
    records = read_both(bus, topic, 3)
    assert [record.value for record in records] == [b"x", None, b"y"]
    assert [name for record in records for name, _ in record.headers] == [UNREADABLE]


def test_a_poll_returns_no_more_than_32_mebibytes_and_a_few_records(bus: LibrdkafkaBus, topic: str) -> None:
    value = bytes(LIMIT_BYTES // 40)
    for _ in range(4):
        produce(bus, "zstd", lambda producer: [producer.send(topic, value, b"k") for _ in range(30)])
    polled: list[int] = []
    with bus.reader({TopicPartition(topic, 0): 0}) as reader:
        while sum(polled) < 120:
            polled.append(len(reader.poll(5.0)))
    assert max(polled) < 60


def test_partitions_that_go_on_are_not_read_again(bus: LibrdkafkaBus) -> None:
    topic = f"librdkafka-{uuid.uuid4().hex[:12]}"
    bus.create([TopicSpec(topic, 2)])
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with bus.writer() as writer:
        for number in range(100):
            writer.send(topic, Message(b"k", b"%d" % number), number % 2)
    with bus.reader({first: 0, second: 0}) as reader:
        begun: list[Record] = []
        until(lambda: begun.extend(reader.poll(1.0, 10)) or len(begun) >= 60)  # type: ignore[func-returns-value]
        assigned = {second: reader.position(second)}
        reader.assign(assigned)
        rest = read(reader, 50 - assigned[second]) if assigned[second] < 50 else []
        assert [record[1:3] for record in rest] == [(1, offset) for offset in range(assigned[second], 50)]
        reader.assign({first: 40})
        assert [record.offset for record in read(reader, 10)] == list(range(40, 50))
