"""Records that expire and topics that are deleted, on either bus."""

from __future__ import annotations

from kafka import KafkaAdminClient
from kafka import TopicPartition as ClientPartition
from patience import until

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.kafka.bus import KafkaBus
from stream_cgzsl.bus.sqlite.bus import SqliteBus
from stream_cgzsl.bus.sqlite.file import OFFSET_BITS, partition_id, transaction


def expire(bus: Bus, topic: str, partition: int, before: int) -> None:
    """Removes the records of a partition before an offset, as at the end of their retention."""
    if isinstance(bus, KafkaBus):
        admin = KafkaAdminClient(**bus.settings.admin())
        admin.delete_records({ClientPartition(topic, partition): before})
        admin.close()
        return
    assert isinstance(bus, SqliteBus)
    db = bus.file.open()
    number = partition_id(db, topic, partition, bus.url)
    base = number << OFFSET_BITS
    with transaction(db, bus.url):
        db.execute("DELETE FROM records WHERE place >= ? AND place < ?", (base, base + before))
        db.execute("UPDATE partitions SET first = ?, next = max(next, ?) WHERE id = ?", (before, before, number))
    db.close()


def delete_topic(bus: Bus, topic: str) -> None:
    """Deletes a topic with its records, as an operator may do with the tools of the bus."""
    if isinstance(bus, KafkaBus):
        admin = KafkaAdminClient(**bus.settings.admin())
        admin.delete_topics([topic])
        admin.close()
        until(lambda: topic not in bus.topics(), "the deletion")
        return
    assert isinstance(bus, SqliteBus)
    db = bus.file.open()
    with transaction(db, bus.url):
        for number in bus.end_offsets(topic):
            base = partition_id(db, topic, number, bus.url) << OFFSET_BITS
            db.execute("DELETE FROM records WHERE place >= ? AND place < ?", (base, base + (1 << OFFSET_BITS)))
        db.execute("DELETE FROM partitions WHERE topic = ?", (topic,))
        db.execute("DELETE FROM topics WHERE name = ?", (topic,))
    db.close()
