"""Step 2, reading a cut: the records between two sets of offsets become a window, invalid ones dead letters."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Set

from stream_cgzsl.bus import Bus, Reader, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import Expired
from stream_cgzsl.schemas import Genesis
from stream_cgzsl.windows.offsets import Ends
from stream_cgzsl.windows.reading import Gathered, OutOfOrder, Reading, Tallies

__all__ = ["Gathered", "Gatherer"]

log = logging.getLogger(__name__)


DEAD_BYTES = 64 * 2**20
"""A window with more than this in dead letters ends where it was read to; the rest of its cut is the next window's."""

_KEPT_EIGHTHS = 7
"""Of the memory budget, for the features that are kept; the rest is for choosing them, and for ids."""

_POLL_BYTES = 2**20
"""Features per poll: this much is still in the processor's cache when it is decoded, checked and copied."""


class Gatherer:
    """Reads cuts of one stream.

    `budget_bytes` bounds the features kept of a window, together with the memory for choosing them and for ids. At
    most `poll_records` are polled at once.
    """

    def __init__(self, bus: Bus, topics: Topics, genesis: Genesis, budget_bytes: int, poll_records: int = 1000) -> None:
        self._bus = bus
        self._topics = topics
        self._genesis = genesis
        self._budget_rows = budget_bytes * _KEPT_EIGHTHS // (8 * 4 * genesis.features)
        self._poll_records = max(1, min(poll_records, _POLL_BYTES // (4 * genesis.features)))

    def gather(
        self,
        number: int,
        starts: Ends,
        ends: Ends,
        live: frozenset[str],
        known_ids: Set[bytes],
        alive: Callable[[], None] = lambda: None,
        late_before: int | None = None,
        dead_bytes: float | None = math.inf,
    ) -> Gathered:
        """Window `number`: [starts, ends) of attributes, then of features.

        `live` are the classes known so far, `known_ids` the id hashes that make a record a duplicate, `late_before`
        (ms) the time before which a feature is late. Of two records with one id the lowest (partition, offset) wins:
        features are read from all partitions at once, and again partition by partition where that broke the rule often.
        With more than `dead_bytes` of dead letters the window ends early; None: they are only counted.
        `alive` is called often and may raise to stop. Raises `Expired`.
        """
        for together in (True, False):
            reading = Reading(self._topics, self._genesis, known_ids, late_before, dead_bytes)
            try:
                self._read_all(reading, starts, ends, live, alive, together)
                break
            except OutOfOrder as error:
                log.info("%s; reading the window again, partition by partition", error)
        return reading.finish(number)

    def _read_all(
        self,
        reading: Reading,
        starts: Ends,
        ends: Ends,
        live: frozenset[str],
        alive: Callable[[], None],
        together: bool,
    ) -> None:
        attributes, features = (
            {p: reading.open(role, p, starts[role].get(p, 0), end) for p, end in sorted(ends[role].items())}
            for role in ("attributes", "features")
        )
        beginning = self._beginning("features", features)
        with self._bus.reader(beginning, waits=False) as reader:  # it looks up its topic meanwhile
            if any(tally.start < tally.end for tally in attributes.values()):
                with self._bus.reader({}, waits=False) as describing:
                    for partition, tally in attributes.items():
                        self._read(describing, "attributes", {partition: tally}, reading, alive)
            reading.begin_features(live, self._budget_rows, sum(tally.end - tally.start for tally in features.values()))
            parts = [features] if together else [{partition: tally} for partition, tally in features.items()]
            for part in parts:
                self._read(reader, "features", part, reading, alive)

    def _beginning(self, role: str, tallies: Tallies) -> dict[TopicPartition, int]:
        """Where to start reading, for the ranges that have anything in them."""
        topic = self._topics[role]
        return {TopicPartition(topic, p): tally.start for p, tally in tallies.items() if tally.start < tally.end}

    def _read(self, reader: Reader, role: str, tallies: Tallies, reading: Reading, alive: Callable[[], None]) -> None:
        """Takes every record of these ranges, batch by batch; once `reading` is full, shortens the ranges instead."""
        take = reading.take_attributes if role == "attributes" else reading.take_features
        beginning = self._beginning(role, tallies)
        left = {tp: tallies[tp.partition].end for tp in beginning}
        if left:
            reader.assign(beginning)
        while left:
            alive()
            if reading.full:
                reading.short = True
                for tp, end in left.items():
                    tallies[tp.partition].end = min(end, reader.position(tp))
                return
            records = reader.poll(1.0, self._poll_records)
            if not records:
                for tp, end in left.items():
                    self._check_end(tp, end)
            take([record for record in records if record.offset < tallies[record.partition].end], tallies)
            done = [tp for tp, end in left.items() if reader.position(tp) >= end]
            for tp in done:
                del left[tp]
            if done and left:  # nothing beyond a range should be fetched
                reader.assign({tp: reader.position(tp) for tp in left})

    def _check_end(self, tp: TopicPartition, wanted: int) -> None:
        """Nothing came: the bus pauses, or the records no longer exist. Raises `Expired` for the latter."""
        end = self._bus.end_offsets(tp.topic)[tp.partition]
        if end < wanted:
            raise Expired(
                f"{tp.topic}/{tp.partition} ends at {end} and the window at {wanted}; was the topic recreated? "
                "Restore its records"
            )
