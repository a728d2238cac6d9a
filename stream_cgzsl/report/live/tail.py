"""Follows the ends of several topics, skipping records when it falls behind."""

from __future__ import annotations

from collections.abc import Mapping

from stream_cgzsl.bus import Bus, Reader, Record, TopicPartition


class Tail:
    """Starts `keep[topic]` offsets before the end of each partition. For one thread."""

    def __init__(self, bus: Bus, keep: Mapping[str, int]) -> None:
        self._bus = bus
        self._keep = keep
        self._start = self._newest()
        self._reader: Reader = bus.reader(self._start)

    def poll(self, timeout: float) -> list[Record]:
        """As `Reader.poll`."""
        return self._reader.poll(timeout)

    def catch_up(self) -> None:
        """Skips all but the newest `keep` records of each partition, and starts to read new partitions."""
        newest = self._newest()
        here = {tp: self._reader.position(tp) for tp in self._start}
        if newest.keys() != here.keys() or any(start > here[tp] for tp, start in newest.items()):
            self._start = {tp: max(start, here.get(tp, 0)) for tp, start in newest.items()}
            self._reader.assign(self._start)

    def _newest(self) -> dict[TopicPartition, int]:
        start = {}
        for topic, keep in self._keep.items():
            first = self._bus.begin_offsets(topic)
            for number, end in self._bus.end_offsets(topic).items():
                start[TopicPartition(topic, number)] = max(first[number], end - keep)
        return start

    def close(self) -> None:
        self._reader.close()
