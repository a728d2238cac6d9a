"""Copies of a stream in which some records were changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from guarded import Stream

from stream_cgzsl.bus import Bus, Record, TopicPartition
from stream_cgzsl.bus.sqlite.bus import SqliteBus
from stream_cgzsl.schemas import Event, decode, encode
from stream_cgzsl.schemas.roles import ROLES

Change = Callable[[str, Record], Record | None]
"""(role, record) -> the record to put in its place, or None for no record."""


def altered(stream: Stream, path: Path, change: Change) -> Stream:
    """A copy of the stream in an SQLite file, with every record passed through `change`, at the same offsets."""
    target = SqliteBus(f"sqlite:///{path}")
    for role in ROLES:
        topic = stream.topics[role]
        spec = stream.bus.topics()[topic]
        target.create([spec])
        for partition, end in stream.bus.end_offsets(topic).items():
            tp = TopicPartition(topic, partition)
            begin = stream.bus.begin_offsets(topic)[partition]
            kept = [change(role, record) for record in _read(stream.bus, tp, begin, end)]
            with target.offset_writer(tp) as writer:
                writer.begin(begin)
                writer.add([record for record in kept if record is not None])
                writer.end(end)
    return Stream(target.url, path.parent, target, stream.topics)


def _read(bus: Bus, tp: TopicPartition, begin: int, end: int) -> list[Record]:
    records: list[Record] = []
    with bus.reader({tp: begin}) as reader:
        while reader.position(tp) < end:
            records += reader.poll(1.0)
    return records


def edited(role: str, record: Record, **changes: Any) -> Record:
    """A record with some fields of its event changed."""
    event = decode(role, record.key, record.value, record.headers)
    return with_event(record, event.model_copy(update=changes))


def with_event(record: Record, event: Event) -> Record:
    message = encode(event)
    return record._replace(key=message.key, value=message.value, headers=message.headers)
