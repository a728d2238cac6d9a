"""Following a stream's generations: the newest whole one, swapped in at once."""

from __future__ import annotations

import logging

from stream_cgzsl.bus import Bus, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.generation import Generation
from stream_cgzsl.schemas import Genesis, LedgerRecord
from stream_cgzsl.windows import ledger

log = logging.getLogger(__name__)


class Follower:
    """Tails the ledger. `generation` and `genesis` may be read by any thread; `refresh` belongs to one.

    Starting costs one generation, however long the ledger is.
    """

    def __init__(self, bus: Bus, topics: Topics) -> None:
        self._bus = bus
        self._topics = topics
        self.generation: Generation | None = None
        self.genesis: Genesis | None = None
        last, end = ledger.read_last(bus, topics)
        self._tp = TopicPartition(topics["windows"], 0)
        self._reader = bus.reader({self._tp: end})
        if last is not None:
            self._take(last)

    def refresh(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds for a new window; True when there is a new generation."""
        records = self._reader.poll(timeout)
        if not records:
            return False
        return self._take(ledger.parse(records[-1]))

    def _take(self, record: LedgerRecord) -> bool:
        if self.genesis is None:
            self.genesis = self._read_genesis(record)
        if record.generation is None:
            return False
        try:
            self.generation = ledger.load_generation(self._bus, self._topics, record)
        except ledger.Incomplete as reason:
            log.info("generation %d was replaced while it was loaded (%s); the next one follows", record.number, reason)
            return False
        return True

    def _read_genesis(self, record: LedgerRecord) -> Genesis:
        if record.genesis is not None:
            return record.genesis
        topic = self._topics["windows"]
        first, end = self._bus.begin_offsets(topic)[0], self._bus.end_offsets(topic)[0]
        for item in ledger.read_range(self._bus, topic, first, min(first + 16, end)):
            genesis = ledger.parse(item).genesis
            if genesis is not None:
                return genesis
        raise BrokenLedger(f"{self._bus.url}: {topic} does not begin with a genesis record; restore it from a copy")

    def close(self) -> None:
        self._reader.close()
