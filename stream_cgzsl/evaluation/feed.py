"""Reading the holdout up to a cut: labelled examples into memory, and what is wrong with the others into dead letters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from stream_cgzsl.bus import Bus, Reader, Record, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import Expired
from stream_cgzsl.evaluation.holdout import Holdout, Place
from stream_cgzsl.schemas import BulkReader, Genesis, InvalidEvent, Message, decode
from stream_cgzsl.schemas import Holdout as HoldoutEvent
from stream_cgzsl.windows.gather import Offsets, check_feature, dead_letter

log = logging.getLogger(__name__)


class Unusable(NamedTuple):
    reason: str
    letter: Message


class HoldoutFeed:
    """Fills `rows`, each record once. Records that have expired, or were lost with their topic, are gone on without.

    Below `buried`, a cut, every unusable record has its dead letter already.
    """

    def __init__(self, bus: Bus, topics: Topics, genesis: Genesis, rows: Holdout) -> None:
        self._bus = bus
        self._topic = topics["holdout"]
        self._genesis = genesis
        self._bulk = BulkReader("holdout", genesis.features, None if genesis.signed else 0.0)
        self._rows = rows
        self.buried: Mapping[int, int] = {}
        self._taken: Offsets = {}
        self._dead: dict[Place, Unusable] = {}

    def read_to(self, cut: Mapping[int, int], alive: Callable[[], None] = lambda: None) -> None:
        """Takes every record below the cut that was not taken yet. `alive` is called often and may raise to stop."""
        while left := self._left(cut):
            start = {tp: self._taken[tp.partition] for tp in left}
            try:
                with self._bus.reader(start) as reader:
                    self._read(reader, left, alive)
            except Expired:
                begins = self._bus.begin_offsets(self._topic)
                if not any(begins[tp.partition] > self._taken[tp.partition] for tp in left):
                    raise

    def waiting(self) -> int:
        """How many records there are behind what was taken."""
        begins = self._bus.begin_offsets(self._topic)
        ends = self._bus.end_offsets(self._topic)
        return sum(max(0, end - max(begins[p], self._taken.get(p, 0))) for p, end in ends.items())

    def dead(self) -> list[Unusable]:
        """The unusable records taken so far that are not buried yet, ordered by place."""
        return [self._dead[place] for place in sorted(self._dead)]

    def bury(self) -> None:
        """The dead letters are on the bus now."""
        self._dead.clear()

    def _left(self, cut: Mapping[int, int]) -> dict[TopicPartition, int]:
        """Where reading must still get to; what is no longer there is passed over."""
        begins = self._bus.begin_offsets(self._topic)
        ends = self._bus.end_offsets(self._topic)
        left: dict[TopicPartition, int] = {}
        for partition, wanted in sorted(cut.items()):
            end = min(wanted, ends.get(partition, 0))
            if end < wanted:
                log.warning(
                    "%s/%d ends at %d, before the cut at %d; was it made anew?", self._topic, partition, end, wanted
                )
            taken = self._taken.setdefault(partition, 0)
            first = min(begins.get(partition, 0), end)
            if taken < first:
                log.info("%s/%d: [%d, %d) has expired and is not tested with", self._topic, partition, taken, first)
                taken = self._taken[partition] = first
            if taken < end:
                left[TopicPartition(self._topic, partition)] = end
        return left

    def _read(self, reader: Reader, left: dict[TopicPartition, int], alive: Callable[[], None]) -> None:
        """Until nothing is left, or nothing comes: then it is time to ask again where the topic ends."""
        while left:
            alive()
            records = reader.poll(1.0)
            self._take([r for r in records if r.offset < left.get(TopicPartition(r.topic, r.partition), 0)])
            for tp, end in list(left.items()):
                position = reader.position(tp)
                self._taken[tp.partition] = min(position, end)
                if position >= end:
                    del left[tp]
            if not records:
                return

    def _take(self, records: Sequence[Record]) -> None:
        read = self._bulk.read(records)
        for record, plain in zip(records, read.events, strict=True):
            place = Place(record.partition, record.offset)
            if plain is not None:
                self._rows.add(plain.key, plain.id, read.rows[plain.row], place)
                continue
            try:
                event = decode("holdout", record.key, record.value, record.headers)
                assert isinstance(event, HoldoutEvent)
                check_feature(event, self._genesis)
                self._rows.add(event.class_id, event.id, event.vector, place)
            except InvalidEvent as error:
                if record.offset >= self.buried.get(record.partition, 0):
                    self._dead[place] = Unusable(error.reason, dead_letter(record, error))
