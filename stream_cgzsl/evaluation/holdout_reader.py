"""Reading the holdout up to a cut: labelled examples into memory, and dead letters for records that cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from stream_cgzsl.bus import Bus, Record
from stream_cgzsl.bus.scan import scan
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.evaluation.holdout import Holdout, Place
from stream_cgzsl.schemas import Genesis, Message
from stream_cgzsl.windows.dead_letters import dead_letter
from stream_cgzsl.windows.offsets import Offsets
from stream_cgzsl.windows.validation import feature_reader


class Unusable(NamedTuple):
    """A record that is not a valid holdout example: why, and its dead letter."""

    reason: str
    letter: Message


class HoldoutReader:
    """Fills `rows`, each record once. Records that have expired, or were lost with their topic, are skipped.

    Below `dead_lettered`, a cut, every unusable record has its dead letter on the bus already.
    """

    def __init__(self, bus: Bus, topics: Topics, genesis: Genesis, rows: Holdout) -> None:
        self._bus = bus
        self._topic = topics["holdout"]
        self._reader = feature_reader("holdout", genesis, topics.decoders.get("holdout"))
        self._rows = rows
        self.dead_lettered: Mapping[int, int] = {}
        self._positions: Offsets = {}
        self._unusable: dict[Place, Unusable] = {}

    def read_to(self, cut: Mapping[int, int], alive: Callable[[], None] = lambda: None) -> None:
        """Reads on to the cut. `alive` is called often and may raise to stop."""
        for records in scan(self._bus, self._topic, self._positions, cut, alive):
            self._add(records)

    def lag(self) -> int:
        """How many records are not read yet."""
        begins = self._bus.begin_offsets(self._topic)
        ends = self._bus.end_offsets(self._topic)
        return sum(max(0, end - max(begins[p], self._positions.get(p, 0))) for p, end in ends.items())

    def unusable(self) -> list[Unusable]:
        """The unusable records read so far whose dead letters are not on the bus yet, ordered by place."""
        return [self._unusable[place] for place in sorted(self._unusable)]

    def clear_unusable(self) -> None:
        """To be called when their dead letters are on the bus."""
        self._unusable.clear()

    def _add(self, records: Sequence[Record]) -> None:
        batch = self._reader.read_all(records)
        errors = iter(batch.refused.values())
        for record, event in zip(records, batch.events, strict=True):
            place = Place(record.partition, record.offset)
            if event is not None:
                self._rows.add(event.key, event.id, batch.rows[event.row], place)
                continue
            error = next(errors)
            if record.offset >= self.dead_lettered.get(record.partition, 0):
                self._unusable[place] = Unusable(error.reason, dead_letter(record, error))
