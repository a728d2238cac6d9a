"""Copying a stream from bus to bus, offsets kept: a run in one file, to share and to replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stream_cgzsl.bus.interface import Bus, TopicPartition, TopicSpec
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas.roles import ROLES


def copy(
    source: Bus,
    target: Bus,
    topics: Topics,
    roles: Iterable[str] = tuple(ROLES),
    told: Callable[[str, int], None] = lambda *_: None,
) -> int:
    """Copies the topics of these roles as they are now; returns the number of records. `told` hears of each batch.

    A learner may be at work meanwhile: the ledger's end is taken first, so that all it speaks of is in the copy. The
    target must not have the topics yet, or have them empty and untouched. Raises `Refused` where a place cannot be kept.
    """
    there, already = source.topics(), target.topics()
    specs = [
        TopicSpec(topics[role], spec.partitions, _kept(spec, role), spec.settings)
        for role in sorted(roles, key=lambda role: role != "windows")
        if (spec := there.get(topics[role])) is not None
    ]
    if not specs:
        raise UsageError(f"{source.url}: the stream {topics.prefix!r} has no topics here; say which with --prefix")
    for spec in specs:
        if spec.name in already and any(target.end_offsets(spec.name).values()):
            raise UsageError(f"{target.url}: topic {spec.name!r} has records already; copy to a new file or prefix")
    target.create(specs)
    ends = {spec.name: source.end_offsets(spec.name) for spec in specs}
    total = 0
    for topic, reached in ends.items():
        begins = source.begin_offsets(topic)
        for partition, end in reached.items():
            total += _copy_partition(source, target, TopicPartition(topic, partition), begins[partition], end, told)
    return total


def _kept(spec: TopicSpec, role: str) -> str:
    """A topic whose settings we may not see is kept as its role asks."""
    return ROLES[role].cleanup if spec.cleanup == "unknown" else spec.cleanup


def _copy_partition(
    source: Bus, target: Bus, tp: TopicPartition, begin: int, end: int, told: Callable[[str, int], None]
) -> int:
    count = 0
    with source.reader({tp: begin}) as reader, target.placing(tp) as placing:
        placing.begin(begin)
        while reader.position(tp) < end:
            records = [record for record in reader.poll(1.0) if record.offset < end]
            if not records:
                continue
            placing.add(records)
            count += len(records)
            told(tp.topic, len(records))
        placing.end(end)
    return count
