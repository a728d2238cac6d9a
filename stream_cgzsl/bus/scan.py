"""Reads every record between two sets of offsets, skipping what has expired meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

from stream_cgzsl.bus.interface import Bus, Reader
from stream_cgzsl.bus.types import Record, TopicPartition
from stream_cgzsl.errors import Expired

log = logging.getLogger(__name__)


def scan(
    bus: Bus, topic: str, positions: dict[int, int], ends: Mapping[int, int], alive: Callable[[], None] = lambda: None
) -> Iterator[list[Record]]:
    """The records from `positions` to `ends`, both per partition, in batches. Without a position: from the first.

    `positions` is updated after each batch, when the next one is requested. Records that have expired, or were lost
    with their topic, are skipped and logged. `alive` is called often and may raise to stop.
    """
    while unread := _unread(bus, topic, positions, ends):
        try:
            with bus.reader({tp: positions[tp.partition] for tp in unread}, waits=False) as reader:
                yield from _read(reader, unread, positions, alive)
        except Expired:
            begins = bus.begin_offsets(topic)
            if not any(begins[tp.partition] > positions[tp.partition] for tp in unread):
                raise


def _unread(bus: Bus, topic: str, positions: dict[int, int], ends: Mapping[int, int]) -> dict[TopicPartition, int]:
    """How far each partition still has to be read."""
    begins, actual_ends = bus.begin_offsets(topic), bus.end_offsets(topic)
    unread: dict[TopicPartition, int] = {}
    for partition, wanted in sorted(ends.items()):
        end = min(wanted, actual_ends.get(partition, 0))
        if end < wanted:
            log.warning("%s/%d ends at %d instead of %d; was the topic recreated?", topic, partition, end, wanted)
        start = positions.setdefault(partition, 0)
        first = min(begins.get(partition, 0), end)
        if start < first:
            log.info("%s/%d: skipping [%d, %d), which has expired", topic, partition, start, first)
            start = positions[partition] = first
        if start < end:
            unread[TopicPartition(topic, partition)] = end
    return unread


def _read(
    reader: Reader, unread: dict[TopicPartition, int], positions: dict[int, int], alive: Callable[[], None]
) -> Iterator[list[Record]]:
    """Reads until nothing is left or a poll returns nothing: the caller then looks again where the topic ends."""
    while unread:
        alive()
        records = reader.poll(1.0)
        yield [r for r in records if r.offset < unread.get(TopicPartition(r.topic, r.partition), 0)]
        for tp, end in list(unread.items()):
            position = reader.position(tp)
            positions[tp.partition] = min(position, end)
            if position >= end:
                del unread[tp]
        if not records:
            return
