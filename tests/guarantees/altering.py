"""What happens to topics behind a learner's back: records that expire, and copies in which something was changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from guarded import Stream
from kafka import KafkaAdminClient
from kafka import TopicPartition as ClientPartition

from stream_cgzsl.bus import Bus, Record, TopicPartition
from stream_cgzsl.bus.kafka import KafkaBus
from stream_cgzsl.bus.sqlite import SqliteBus
from stream_cgzsl.bus.sqlite_file import OFFSET_BITS, partition_id, writing
from stream_cgzsl.schemas import Event, decode, encode
from stream_cgzsl.schemas.roles import ROLES

Change = Callable[[str, Record], Record | None]
"""Role and record in; the record as it should be out, or None where there should be none."""


def expire(bus: Bus, topic: str, partition: int, before: int) -> None:
    """The records of a partition before an offset are gone, as when their time was up."""
    if isinstance(bus, KafkaBus):
        admin = KafkaAdminClient(**bus.settings.admin())
        admin.delete_records({ClientPartition(topic, partition): before})
        admin.close()
        return
    assert isinstance(bus, SqliteBus)
    db = bus.file.open()
    base = partition_id(db, topic, partition, bus.url) << OFFSET_BITS
    with writing(db, bus.url):
        db.execute("DELETE FROM records WHERE place >= ? AND place < ?", (base, base + before))
    db.close()
    bus.bound(TopicPartition(topic, partition), first=before, end=before)


def altered(stream: Stream, path: Path, change: Change) -> Stream:
    """A copy of the stream in an SQLite file, every record as `change` wants it, offsets kept."""
    target = SqliteBus(f"sqlite:///{path}")
    for role in ROLES:
        topic = stream.topics[role]
        spec = stream.bus.topics()[topic]
        target.create([spec])
        for partition, end in stream.bus.end_offsets(topic).items():
            tp = TopicPartition(topic, partition)
            begin = stream.bus.begin_offsets(topic)[partition]
            kept = [change(role, record) for record in _read(stream.bus, tp, begin, end)]
            target.place(tp, [record for record in kept if record is not None])
            target.bound(tp, begin, end)
    return Stream(target.url, path.parent, target, stream.topics)


def _read(bus: Bus, tp: TopicPartition, begin: int, end: int) -> list[Record]:
    records: list[Record] = []
    with bus.reader({tp: begin}) as reader:
        while reader.position(tp) < end:
            records += reader.poll(1.0)
    return records


def edited(role: str, record: Record, **changes: Any) -> Record:
    """A record whose event says something else."""
    event = decode(role, record.key, record.value, record.headers)
    return with_event(record, event.model_copy(update=changes))


def with_event(record: Record, event: Event) -> Record:
    message = encode(event)
    return record._replace(key=message.key, value=message.value, headers=message.headers)
