"""Copies a stream from one bus to another, keeping every offset: a run in one file, to share and to replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stream_cgzsl.bus.interface import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.bus.types import TopicPartition, TopicSpec
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas.roles import ROLES


def copy(
    source: Bus,
    target: Bus,
    topics: Topics,
    roles: Iterable[str] = tuple(ROLES),
    report: Callable[[str, int], None] = lambda *_: None,
) -> int:
    """Copies the topics of these roles as they are now; returns the number of records. `report` is told, per batch, the
    topic and by how many offsets it is further.

    A learner may be running meanwhile: the end of the ledger is looked up first, so everything it refers to is copied.
    The target's topics must not exist yet, or be empty and never written to. Raises `Refused` when an offset cannot be
    kept.
    """
    there, already = source.topics(), target.topics()
    specs = [
        TopicSpec(topics[role], spec.partitions, _cleanup(spec, role), spec.settings)
        for role in sorted(roles, key=lambda role: role != "windows")
        if (spec := there.get(topics[role])) is not None
    ]
    if not specs:
        raise UsageError(
            f"{source.url}: the stream {topics.prefix!r} has no topics here; name the stream with --prefix"
        )
    for spec in specs:
        if spec.name in already and any(target.end_offsets(spec.name).values()):
            raise UsageError(f"{target.url}: topic {spec.name!r} has records already; copy to a new file or prefix")
    target.create(specs)
    ends = {spec.name: source.end_offsets(spec.name) for spec in specs}
    total = 0
    for topic, partition_ends in ends.items():
        begins = source.begin_offsets(topic)
        for partition, end in partition_ends.items():
            total += _copy_partition(source, target, TopicPartition(topic, partition), begins[partition], end, report)
    return total


def _cleanup(spec: TopicSpec, role: str) -> str:
    """The topic's own policy, or its role's where this user may not see the topic's settings."""
    return ROLES[role].cleanup if spec.cleanup == "unknown" else spec.cleanup


def _copy_partition(
    source: Bus, target: Bus, tp: TopicPartition, begin: int, end: int, report: Callable[[str, int], None]
) -> int:
    count = 0
    with source.reader({tp: begin}) as reader, target.offset_writer(tp) as writer:
        writer.begin(begin)
        position = begin
        while position < end:
            records = [record for record in reader.poll(1.0) if record.offset < end]
            before, position = position, min(reader.position(tp), end)
            report(tp.topic, position - before)
            if records:
                writer.add(records)
                count += len(records)
        writer.end(end)
    return count
