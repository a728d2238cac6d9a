"""Topics that no other test uses, on whichever bus is being tested."""

from __future__ import annotations

import uuid

import pytest
from bus_reading import DropBefore, NewTopic
from kafka import KafkaAdminClient
from kafka import TopicPartition as ClientPartition

from stream_cgzsl.bus import Bus, TopicPartition, TopicSpec
from stream_cgzsl.bus.kafka import KafkaBus
from stream_cgzsl.bus.sqlite import SqliteBus
from stream_cgzsl.bus.sqlite_file import OFFSET_BITS, partition_id, writing


@pytest.fixture
def new_topic(bus: Bus) -> NewTopic:
    """Creates a topic and returns its name: `new_topic(partitions=1, cleanup="keep")`."""

    def create(partitions: int = 1, cleanup: str = "keep") -> str:
        name = f"contract-{uuid.uuid4().hex[:12]}"
        bus.create([TopicSpec(name, partitions, cleanup)])
        return name

    return create


@pytest.fixture
def topic(new_topic: NewTopic) -> str:
    """A topic of one partition."""
    return new_topic()


@pytest.fixture
def name() -> str:
    """A name for a group, a publisher or a lock that no other test uses."""
    return f"contract-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def drop_before(bus: Bus) -> DropBefore:
    """Makes the records of a partition before an offset expire."""

    def drop(topic: str, partition: int, offset: int) -> None:
        if isinstance(bus, KafkaBus):
            admin = KafkaAdminClient(**bus.settings.admin())
            admin.delete_records({ClientPartition(topic, partition): offset})
            admin.close()
        else:
            assert isinstance(bus, SqliteBus)
            db = bus.file.open()
            base = partition_id(db, topic, partition, bus.url) << OFFSET_BITS
            with writing(db, bus.url):
                db.execute("DELETE FROM records WHERE place >= ? AND place < ?", (base, base + offset))
            db.close()
            bus.bound(TopicPartition(topic, partition), first=offset, end=offset)

    return drop
