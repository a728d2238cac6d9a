"""The newest records of several topics, and then whatever comes, without ever falling behind for long."""

from __future__ import annotations

from collections.abc import Mapping

from stream_cgzsl.bus import Bus, Reader, Record, TopicPartition


class Tail:
    """Reads from `keep[topic]` offsets before each partition's end. Belongs to one thread."""

    def __init__(self, bus: Bus, keep: Mapping[str, int]) -> None:
        self._bus = bus
        self._keep = keep
        self._start = self._newest()
        self._reader: Reader = bus.reader(self._start)

    def poll(self, timeout: float) -> list[Record]:
        """As `Reader.poll`."""
        return self._reader.poll(timeout)

    def catch_up(self) -> None:
        """Skips what nobody would see: where more than `keep` records wait, only the newest of them are read.

        Partitions that are new since the last look are read from now on.
        """
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
