"""Reading a topic through for those who can do without what is gone: every record between two sets of offsets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

from stream_cgzsl.bus.interface import Bus, Reader, Record, TopicPartition
from stream_cgzsl.errors import Expired

log = logging.getLogger(__name__)


def read_through(
    bus: Bus, topic: str, taken: dict[int, int], until: Mapping[int, int], alive: Callable[[], None] = lambda: None
) -> Iterator[list[Record]]:
    """The records from `taken` (by partition; from the first, where it says nothing) to `until`, a batch at a time.

    `taken` moves along, behind each batch when the next one is asked for. What has expired, or was lost with its topic,
    is passed over and told in the log. `alive` is called often and may raise to stop.
    """
    while left := _left(bus, topic, taken, until):
        try:
            with bus.reader({tp: taken[tp.partition] for tp in left}, waits=False) as reader:
                yield from _read(reader, left, taken, alive)
        except Expired:
            begins = bus.begin_offsets(topic)
            if not any(begins[tp.partition] > taken[tp.partition] for tp in left):
                raise


def _left(bus: Bus, topic: str, taken: dict[int, int], until: Mapping[int, int]) -> dict[TopicPartition, int]:
    """How far each partition must still be read."""
    begins, ends = bus.begin_offsets(topic), bus.end_offsets(topic)
    left: dict[TopicPartition, int] = {}
    for partition, wanted in sorted(until.items()):
        end = min(wanted, ends.get(partition, 0))
        if end < wanted:
            log.warning("%s/%d ends at %d, and should at %d; was it made anew?", topic, partition, end, wanted)
        start = taken.setdefault(partition, 0)
        first = min(begins.get(partition, 0), end)
        if start < first:
            log.info("%s/%d: [%d, %d) has expired and is passed over", topic, partition, start, first)
            start = taken[partition] = first
        if start < end:
            left[TopicPartition(topic, partition)] = end
    return left


def _read(
    reader: Reader, left: dict[TopicPartition, int], taken: dict[int, int], alive: Callable[[], None]
) -> Iterator[list[Record]]:
    """Until nothing is left, or nothing comes: then it is time to ask again where the topic ends."""
    while left:
        alive()
        records = reader.poll(1.0)
        yield [r for r in records if r.offset < left.get(TopicPartition(r.topic, r.partition), 0)]
        for tp, end in list(left.items()):
            position = reader.position(tp)
            taken[tp.partition] = min(position, end)
            if position >= end:
                del left[tp]
        if not records:
            return
