"""Becoming the learner that wrote the ledger: its last snapshot, then the windows since, trained again."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger, Expired, UsageError
from stream_cgzsl.history.stream_learner import Configuration, Outcome, Step, StreamLearner, apply_window
from stream_cgzsl.learners.interface import SILENT, Monitor
from stream_cgzsl.schemas import LedgerRecord
from stream_cgzsl.windows.gaps import expired_ranges
from stream_cgzsl.windows.gather import Gathered, Gatherer
from stream_cgzsl.windows.ledger import Incomplete, load_state
from stream_cgzsl.windows.offsets import ends_of
from stream_cgzsl.windows.recorded import Ledger

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Restorer:
    """Rebuilds learners from a ledger. `alive` is called often and may raise to stop.

    With `rebuild`, snapshots are ignored. A digest that differs is an error, or only a warning with `rebuild` or when
    not `strict`. With `configuration`, every window is learned under that one instead of its own: what if.
    """

    bus: Bus
    topics: Topics
    ledger: Ledger
    device: str
    alive: Callable[[], None] = lambda: None
    rebuild: bool = False
    strict: bool = True
    configuration: Configuration | None = None
    _kept: dict[int, tuple[Configuration, bytes]] = field(default_factory=dict)  # what later rollbacks go back to
    _targets: set[int] = field(default_factory=set)

    def at(self, number: int) -> StreamLearner:
        """The learner after window `number`.

        Raises `BrokenLedger` when a window trained again does not give the digest the ledger has, and `Expired` when
        its records are gone.
        """
        learner = self._base(number)
        self.expect_rollbacks(learner.number + 1, number)
        first, started = learner.number + 1, time.monotonic()
        for record in self.ledger.records(first, number):
            self.alive()
            learner, outcome = self.apply(learner, record, monitor=_Watch(self.alive))
            digest = outcome.generation.digest
            left = number - record.number
            seconds = (time.monotonic() - started) / (record.number - first + 1) * left
            short = digest[:12]
            log.info("window %d trained again: %s; about %.0f s for %d more", record.number, short, seconds, left)
            if digest != record.generation:
                self._report_difference(record, digest)
        return learner

    def apply(
        self,
        learner: StreamLearner | None,
        record: LedgerRecord,
        gathered: Gathered | None = None,
        monitor: Monitor = SILENT,
        kind: str | None = None,
    ) -> tuple[StreamLearner, Outcome]:
        """One window of the ledger again, as `apply_window`; its inputs are read unless they are given."""
        if record.to is None and gathered is None:
            assert learner is not None
            gathered = self.gather(learner, record)
        configuration, old = self._configuration_of(record), record.remembered is None
        step = Step(record.number, kind or record.kind, record.to, configuration, every_window_counts=old)
        learner, outcome = apply_window(learner, step, gathered, self.at, monitor)
        self.keep(learner)
        return learner, outcome

    def expect_rollbacks(self, first: int, last: int) -> None:
        """Windows `first` to `last` come next: finds out which of them are gone back to, so that `keep` keeps these."""
        self._targets.update(record.to for record in self.ledger.records(first, last) if record.to is not None)

    def keep(self, learner: StreamLearner) -> None:
        """Remembers the learner if a later rollback goes back to it."""
        if learner.number in self._targets:
            self._kept[learner.number] = learner.configuration, learner.snapshot()

    def gather(self, learner: StreamLearner, record: LedgerRecord, letters: bool = False) -> Gathered:
        """The window of a ledger record, read again from its ranges; its dead letters are kept if asked for."""
        self._check_decoders(record)
        gatherer = Gatherer(self.bus, self.topics, self.ledger.genesis, self._configuration_of(record).memory_bytes)
        starts = {
            role: {p: span.start for p, span in record.ranges[role].items()} for role in ("attributes", "features")
        }
        late = self.ledger.complete(record).late_ms
        try:
            return gatherer.gather(
                record.number,
                starts,
                ends_of(record),
                learner.live,
                learner.known_ids,
                self.alive,
                late,
                dead_bytes=math.inf if letters else None,
            )
        except Expired as error:
            gone = ", ".join(expired_ranges(self.bus, self.topics, record)) or str(error)
            raise Expired(f"window {record.number} cannot be trained again: {gone}") from error

    def _check_decoders(self, record: LedgerRecord) -> None:
        """Raises `UsageError` where the window was read with other decoders than are named now."""
        then, now = configuration_of(self.ledger, record).decoders, self.topics.training_decoders()
        if then != now:
            named = " ".join(f"--decoder {role}={name}" for role, name in then.items()) or "no --decoder"
            raise UsageError(
                f"window {record.number} was read with {named} for attributes and features, and is read again the same "
                "way: name these"
            )

    def from_snapshot(self, record: LedgerRecord) -> StreamLearner:
        """The learner after the window of `record`, from its own snapshot. Raises `Incomplete` when that is gone."""
        return self._restored(self._configuration_of(record), load_state(self.bus, self.topics, record))

    def _configuration_of(self, record: LedgerRecord) -> Configuration:
        return self.configuration or configuration_of(self.ledger, record)

    def _base(self, number: int) -> StreamLearner:
        """The newest learner at or before window `number` that needs no training, or an untrained one."""
        kept = max((one for one in self._kept if one <= number), default=0)
        for record in () if self.rebuild else self.ledger.back(number):
            if record.number <= kept:
                break
            if record.state is not None:
                try:
                    return self.from_snapshot(record)
                except Incomplete as reason:
                    log.info("the snapshot of window %d is gone (%s); trying an older one", record.number, reason)
        if kept:
            return self._restored(*self._kept[kept])
        return StreamLearner(self.ledger.genesis, self._configuration_of(self.ledger.record(0)), self.device)

    def _restored(self, configuration: Configuration, snapshot: bytes) -> StreamLearner:
        learner = StreamLearner(self.ledger.genesis, configuration, self.device)
        learner.restore(snapshot)
        return learner

    def _report_difference(self, record: LedgerRecord, digest: str) -> None:
        text = (
            f"{self.bus.url}: window {record.number}, trained again, gave generation {digest[:12]} and the ledger has "
            f"{(record.generation or 'nothing')[:12]}; it was made with {record.environment}"
        )
        if self.strict and not self.rebuild:
            raise BrokenLedger(f"{text}. Start in that environment, or accept the new result with: learn --rebuild")
        log.warning("%s", text)


class _Watch(Monitor):
    """Ends training when `alive` raises."""

    def __init__(self, alive: Callable[[], None]) -> None:
        self._alive = alive

    def cancelled(self) -> bool:
        self._alive()
        return False


def configuration_of(ledger: Ledger, record: LedgerRecord) -> Configuration:
    """The configuration a window was learned with."""
    return Configuration(**ledger.configuration(record))
