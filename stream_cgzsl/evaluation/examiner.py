"""Going through a ledger and evaluating its generations, one after the other. Nothing is written here."""

from __future__ import annotations

import logging
from collections.abc import Callable

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.evaluation.evaluate import evaluate
from stream_cgzsl.evaluation.feed import HoldoutFeed
from stream_cgzsl.evaluation.holdout import Holdout
from stream_cgzsl.generation import Generation
from stream_cgzsl.schemas import Evaluation, LedgerRecord
from stream_cgzsl.windows import ledger

log = logging.getLogger(__name__)


class Examiner:
    """Goes on after `last`, the newest evaluation there is. All it knows comes from the bus.

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
        self._record: LedgerRecord | None = None  # the one before
        self._generation: Generation | None = None  # the newest that was evaluated
        self._holdout: Holdout | None = None
        self.feed: HoldoutFeed | None = None

    def examine(self, record: LedgerRecord) -> Evaluation | None:
        """The evaluation of a record's generation; None where there is one already, and for the genesis.

        Records must be given in order, from the first. Raises `ledger.Incomplete` when the generation is gone, and
        `BrokenLedger` when the evaluations are of another ledger.
        """
        before, self._record = self._record, record
        if self._holdout is None:
            self._begin(record)
        number = 0 if self.last is None else self.last.generation
        if record.number <= number:
            if self.last is not None and record.number == number:
                self._check(self.last, record)
            return None
        generation = ledger.load_generation(self._bus, self._topics, record)
        assert self.feed is not None and self._holdout is not None
        self.feed.read_to(record.holdout, self._alive)
        best = {} if self.last is None else self.last.best
        evaluation = evaluate(generation, self._before(before), self._holdout.rows(), best, self._alive)
        self._generation = generation
        return evaluation

    def published(self, evaluation: Evaluation) -> None:
        """The evaluation is on the bus, and with it the dead letters of the feed."""
        assert self.feed is not None
        self.last = evaluation
        self.feed.bury()

    def _begin(self, record: LedgerRecord) -> None:
        if record.genesis is None:
            raise BrokenLedger(
                f"{self._bus.url}: {self._topics['windows']} does not begin with a genesis record; restore it from a copy"
            )
        self._holdout = Holdout(record.genesis.features, self._holdout_bytes)
        self.feed = HoldoutFeed(self._bus, self._topics, record.genesis, self._holdout)

    def _check(self, last: Evaluation, record: LedgerRecord) -> None:
        """What stands below the cut of the last evaluation was buried with it."""
        if last.digest != record.generation:
            raise BrokenLedger(
                f"{self._bus.url}: the newest record of {self._topics['evaluations']} is of generation "
                f"{record.number} with the digest {last.digest[:12]}, and the ledger says "
                f"{(record.generation or 'none')[:12]}: it is of another stream; make the topic anew"
            )
        assert self.feed is not None
        self.feed.buried = record.holdout

    def _before(self, record: LedgerRecord | None) -> Generation | None:
        """The generation of the record before, where it can still be had."""
        if record is None or record.generation is None:
            return None
        if self._generation is not None and self._generation.number == record.number:
            return self._generation
        try:
            return ledger.load_generation(self._bus, self._topics, record)
        except ledger.Incomplete as reason:
            log.info("how far projections moved since generation %d is not known: %s", record.number, reason)
            return None
