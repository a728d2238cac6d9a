"""Copying a stream from bus to bus, offsets kept: a run in one file, to share and to replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stream_cgzsl.bus.interface import Bus, Record, TopicPartition, TopicSpec
from stream_cgzsl.bus.sqlite import SqliteBus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import Refused, UsageError
from stream_cgzsl.schemas.message import Message
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
    target must not have the topics yet, or have them empty. To SQLite everything keeps its place. To Kafka only
    what has no gaps can: offsets are the broker's to give. Raises `Refused` where a place cannot be kept.
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
    with source.reader({tp: begin}) as reader:
        while reader.position(tp) < end:
            records = [record for record in reader.poll(1.0) if record.offset < end]
            if not records:
                continue
            if isinstance(target, SqliteBus):
                target.place(tp, records)
            else:
                _send(target, tp, records)
            count += len(records)
            told(tp.topic, len(records))
    if isinstance(target, SqliteBus):
        target.bound(tp, begin, end)
    return count


def _send(target: Bus, tp: TopicPartition, records: list[Record]) -> None:
    with target.writer() as writer:
        receipts = [
            writer.send(tp.topic, Message(r.key, r.value, r.headers, r.timestamp_ms), tp.partition) for r in records
        ]
        writer.flush()
    for record, receipt in zip(records, receipts, strict=True):
        if record.offset != receipt.offset:
            raise Refused(
                f"{target.url}: {tp.topic}/{tp.partition} offset {record.offset} came to stand at {receipt.offset}; the "
                "source has gaps (transaction markers, compaction, expiry) that Kafka cannot repeat: copy to SQLite instead"
            )
