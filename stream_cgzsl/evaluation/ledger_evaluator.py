"""Evaluates the generations of a ledger, one after the other. Writes nothing."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Sequence

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.evaluation.evaluate import evaluate
from stream_cgzsl.evaluation.holdout import Holdout
from stream_cgzsl.evaluation.holdout_reader import HoldoutReader
from stream_cgzsl.schemas import Evaluation, LedgerRecord
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import GenerationLoader, load_generation
from stream_cgzsl.windows import ledger

log = logging.getLogger(__name__)

_MANY = 16  # with more generations to evaluate, it pays to find out first which of them are left


class LedgerEvaluator:
    """Continues after `last`, the newest evaluation on the bus.

    `holdout_bytes` bounds the test rows kept in memory. `alive` is called often and may raise to stop.
    """

    def __init__(
        self,
        bus: Bus,
        topics: Topics,
        last: Evaluation | None,
        holdout_bytes: int,
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        self._bus = bus
        self._topics = topics
        self._holdout_bytes = holdout_bytes
        self._alive = alive
        self.last = last
        self._record: LedgerRecord | None = None  # the previous one
        self._first_left = 0  # older generations are gone
        self._loader = GenerationLoader(bus, topics)
        self._holdout: Holdout | None = None
        self.reader: HoldoutReader | None = None

    def look_ahead(self, records: Sequence[LedgerRecord]) -> None:
        """Finds the first generation that is still there, if these are many records to evaluate.

        Compaction removes the oldest first, so a binary search finds it.
        """
        ahead = [record for record in records if record.number > self._number]
        if len(ahead) > _MANY:
            gone = bisect_left(ahead, True, key=self._is_left)
            self._first_left = ahead[gone].number if gone < len(ahead) else ahead[-1].number + 1

    def _is_left(self, record: LedgerRecord) -> bool:
        self._alive()
        try:
            load_generation(self._bus, self._topics, record)
        except ledger.Incomplete:
            return False
        return True

    @property
    def _number(self) -> int:
        """The newest generation with an evaluation."""
        return 0 if self.last is None else self.last.generation

    def evaluate(self, record: LedgerRecord) -> Evaluation | None:
        """The evaluation of a record's generation; None if there is one already, and for the genesis.

        Records must be given in order, from that of the last evaluation or an earlier one. Raises `ledger.Incomplete`
        if the generation is gone, and `BrokenLedger` if the evaluations belong to another ledger.
        """
        before, self._record = self._record, record
        if self._holdout is None:
            self._begin(record)
        if record.number <= self._number:
            if self.last is not None and record.number == self._number:
                self._check(self.last, record)
            return None
        if record.number < self._first_left:
            raise ledger.Incomplete(f"the first one left is {self._first_left}")
        earlier = self._before(before)
        generation = self._loader.load(record)
        assert self.reader is not None and self._holdout is not None
        self.reader.read_to(record.holdout, self._alive)
        best = {} if self.last is None else self.last.best
        return evaluate(generation, earlier, self._holdout.rows(), best, self._alive)

    def mark_published(self, evaluation: Evaluation) -> None:
        """The evaluation is on the bus, and with it the dead letters of the holdout."""
        assert self.reader is not None
        self.last = evaluation
        self.reader.clear_unusable()

    def _begin(self, record: LedgerRecord) -> None:
        genesis = record.genesis or ledger.read_genesis(self._bus, self._topics)
        self._holdout = Holdout(genesis.features, self._holdout_bytes)
        self.reader = HoldoutReader(self._bus, self._topics, genesis, self._holdout)

    def _check(self, last: Evaluation, record: LedgerRecord) -> None:
        """The last evaluation's transaction had the dead letters of all records up to its cut."""
        if last.digest != record.generation:
            raise BrokenLedger(
                f"{self._bus.url}: the newest record of {self._topics['evaluations']} is of generation "
                f"{record.number} with the digest {last.digest[:12]}, and the ledger says "
                f"{(record.generation or 'none')[:12]}: it belongs to another stream; recreate the topic"
            )
        assert self.reader is not None
        self.reader.dead_lettered = record.holdout

    def _before(self, record: LedgerRecord | None) -> Generation | None:
        """The generation of the previous record, if it is still there."""
        if record is None or record.generation is None:
            return None
        generation = self._loader.generation
        if generation is not None and generation.number == record.number:
            return generation
        try:
            return self._loader.load(record)
        except ledger.Incomplete as reason:
            log.info("no projection drift since generation %d: %s", record.number, reason)
            return None
