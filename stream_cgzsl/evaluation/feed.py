"""Reading the holdout up to a cut: labelled examples into memory, and what is wrong with the others into dead letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from stream_cgzsl.bus import Bus, Record
from stream_cgzsl.bus.through import read_through
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.evaluation.holdout import Holdout, Place
from stream_cgzsl.schemas import BulkReader, Genesis, InvalidEvent, Message, decode
from stream_cgzsl.schemas import Holdout as HoldoutEvent
from stream_cgzsl.windows.gather import Offsets, check_feature, dead_letter


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
        for records in read_through(self._bus, self._topic, self._taken, cut, alive):
            self._take(records)

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
