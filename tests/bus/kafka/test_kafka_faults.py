"""A broker that dies and restarts, or stays down."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator

import pytest
from own_broker import OwnBroker

from stream_cgzsl.bus import Bus, TopicPartition, TopicSpec, connect
from stream_cgzsl.demo import broker
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.schemas.message import Message


@pytest.fixture
def topic(own_broker: OwnBroker) -> str:
    name = f"faults-{uuid.uuid4().hex[:12]}"
    with connect(own_broker.url) as bus:
        bus.create([TopicSpec(name)])
    return name


@pytest.fixture
def bus(own_broker: OwnBroker) -> Iterator[Bus]:
    with connect(own_broker.url) as connected:
        yield connected


def read(bus: Bus, topic: str) -> list[bytes | None]:
    end = bus.end_offsets(topic)[0]
    found: list[bytes | None] = []
    tp = TopicPartition(topic, 0)
    with bus.reader({tp: 0}) as reader:
        while reader.position(tp) < end:
            found += [record.value for record in reader.poll(1.0)]
    return found


def test_everything_continues_after_a_broker_restart(own_broker: OwnBroker, bus: Bus, topic: str) -> None:
    """Writer, publisher, reader and bus all survive a broker that is killed and restarted."""
    tp = TopicPartition(topic, 0)
    with bus.writer() as writer, bus.publisher(topic) as publisher, bus.reader({tp: 0}) as reader:
        writer.send(topic, Message(None, b"before"))
        writer.flush()
        assert [record.value for record in reader.poll(10.0)] == [b"before"]
        publisher.begin()
        publisher.send(topic, Message(None, b"open"))
        publisher.flush()
        own_broker.broker.kill()
        restart = threading.Thread(target=own_broker.broker.restart)
        restart.start()
        writer.send(topic, Message(None, b"during"))
        writer.flush()
        publisher.commit()
        restart.join()
        found: list[bytes | None] = []
        while len(found) < 2:
            found += [record.value for record in reader.poll(10.0)]
    assert found == [b"open", b"during"]
    assert read(bus, topic) == [b"before", b"open", b"during"]


def test_a_broker_that_stays_down(own_broker: OwnBroker, topic: str) -> None:
    """Every call raises in time, everything can be closed, and a new publisher works."""
    bus, tp = connect(f"{own_broker.url}?patience_ms=2000"), TopicPartition(topic, 0)
    writer, publisher, reader = bus.writer(), bus.publisher(topic), bus.reader({tp: 0})
    writer.send(topic, Message(None, b"before"))
    writer.flush()
    publisher.begin()
    publisher.send(topic, Message(None, b"undecided"))
    publisher.flush()
    own_broker.broker.kill()
    try:
        for _ in range(1000):
            writer.send(topic, Message(None, b"lost"))
        for attempt in (
            publisher.commit,
            publisher.begin,
            writer.flush,
            bus.topics,
            lambda: bus.end_offsets(topic),
            lambda: [reader.poll(0.2) for _ in range(100)],
        ):
            started = time.monotonic()
            with pytest.raises(BusUnavailable, match=own_broker.broker.address):
                attempt()
            assert time.monotonic() - started < 60.0, "many failed records must not take longer than one"
        with pytest.raises(BusUnavailable, match="may or may not become visible"):
            publisher.begin()
        publisher.abort()
        for thing in (publisher, writer, reader, bus):
            thing.close()
    finally:
        own_broker.broker.restart()
    with connect(own_broker.url) as later, later.publisher(topic) as newer:
        newer.begin()
        newer.send(topic, Message(None, b"after"))
        newer.commit()
        assert read(later, topic) in ([b"before", b"after"], [b"before", b"undecided", b"after"])


@pytest.mark.slow
def test_clients_that_never_reached_a_broker_leave_no_thread_behind() -> None:
    before = threading.active_count()
    for _ in range(3):
        with pytest.raises(BusUnavailable):
            connect(f"kafka://127.0.0.1:{broker.free_port()}?patience_ms=1000")
    assert threading.active_count() == before
