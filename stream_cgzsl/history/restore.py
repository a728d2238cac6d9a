"""Becoming the learner that wrote the ledger: its last snapshot, then the windows since, trained again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger, Expired, UsageError
from stream_cgzsl.history.stream_learner import Configuration, Outcome, Step, StreamLearner, apply_window
from stream_cgzsl.learners.interface import SILENT, Monitor
from stream_cgzsl.schemas import LedgerRecord
from stream_cgzsl.windows.gaps import expired_ranges
from stream_cgzsl.windows.gather import Gathered, Gatherer
from stream_cgzsl.windows.ledger import Incomplete, genesis_of, late_before, load_state
from stream_cgzsl.windows.offsets import ends_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Restorer:
    """Rebuilds learners from a ledger. `alive` is called often and may raise to stop.

    With `rebuild`, snapshots are ignored. A digest that differs is an error, or only a warning with `rebuild` or when
    not `strict`. With `configuration`, every window is learned under that one instead of its own: what if.
    """

    bus: Bus
    topics: Topics
    records: list[LedgerRecord]
    device: str
    alive: Callable[[], None] = lambda: None
    rebuild: bool = False
    strict: bool = True
    configuration: Configuration | None = None
    _kept: dict[int, bytes] = field(default_factory=dict)  # snapshots that later rollbacks go back to

    def at(self, number: int) -> StreamLearner:
        """The learner after window `number`.

        Raises `BrokenLedger` when a window trained again does not give the digest the ledger has, and `Expired` when
        its records are gone.
        """
        learner = self._base(number)
        first, started = learner.number + 1, time.monotonic()
        for record in self.records[first : number + 1]:
            self.alive()
            learner, outcome = self.apply(learner, record)
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
        step = Step(record.number, kind or record.kind, record.to, self._configuration_of(record.number))
        learner, outcome = apply_window(learner, step, gathered, self.at, monitor)
        self.keep(learner)
        return learner, outcome

    def keep(self, learner: StreamLearner) -> None:
        """Remembers the learner if a later rollback goes back to it."""
        if learner.number in self._rollback_targets:
            self._kept[learner.number] = learner.snapshot()

    def gather(self, learner: StreamLearner, record: LedgerRecord) -> Gathered:
        """The window of a ledger record, read again from its ranges."""
        self._check_decoders(record.number)
        budget = self._configuration_of(record.number).memory_bytes
        gatherer = Gatherer(self.bus, self.topics, genesis_of(self.records), budget)
        starts = {
            role: {p: span.start for p, span in record.ranges[role].items()} for role in ("attributes", "features")
        }
        late = late_before(self.records, record.number)
        try:
            return gatherer.gather(
                record.number, starts, ends_of(record), learner.live, learner.known_ids, self.alive, late
            )
        except Expired as error:
            gone = ", ".join(expired_ranges(self.bus, self.topics, record)) or str(error)
            raise Expired(f"window {record.number} cannot be trained again: {gone}") from error

    def _check_decoders(self, number: int) -> None:
        """Raises `UsageError` where the window was read with other decoders than are named now."""
        then, now = configuration_at(self.records, number).decoders, self.topics.training_decoders()
        if then != now:
            named = " ".join(f"--decoder {role}={name}" for role, name in then.items()) or "no --decoder"
            raise UsageError(
                f"window {number} was read with {named} for attributes and features, and is read again the same way: "
                "name these"
            )

    def from_snapshot(self, record: LedgerRecord) -> StreamLearner:
        """The learner after the window of `record`, from its own snapshot. Raises `Incomplete` when that is gone."""
        return self._restored(record.number, load_state(self.bus, self.topics, record))

    @cached_property
    def _rollback_targets(self) -> frozenset[int]:
        return frozenset(record.to for record in self.records if record.to is not None)

    def _configuration_of(self, number: int) -> Configuration:
        return self.configuration or configuration_at(self.records, number)

    def _base(self, number: int) -> StreamLearner:
        """The newest learner at or before window `number` that needs no training, or an untrained one."""
        for record in reversed(self.records[1 : number + 1]):
            if record.number in self._kept:
                return self._restored(record.number, self._kept[record.number])
            if record.state is not None and not self.rebuild:
                try:
                    return self.from_snapshot(record)
                except Incomplete as reason:
                    log.info("the snapshot of window %d is gone (%s); trying an older one", record.number, reason)
        return self._untrained(0)

    def _restored(self, number: int, snapshot: bytes) -> StreamLearner:
        learner = self._untrained(number)
        learner.restore(snapshot)
        return learner

    def _untrained(self, number: int) -> StreamLearner:
        return StreamLearner(genesis_of(self.records), self._configuration_of(number), self.device)

    def _report_difference(self, record: LedgerRecord, digest: str) -> None:
        text = (
            f"{self.bus.url}: window {record.number}, trained again, gave generation {digest[:12]} and the ledger has "
            f"{(record.generation or 'nothing')[:12]}; it was made with {record.environment}"
        )
        if self.strict and not self.rebuild:
            raise BrokenLedger(f"{text}. Start in that environment, or accept the new result with: learn --rebuild")
        log.warning("%s", text)


def configuration_at(records: Sequence[LedgerRecord], number: int) -> Configuration:
    """The configuration window `number` was learned with: the last one written at or before it."""
    for record in reversed(records[: number + 1]):
        if record.configuration is not None:
            return Configuration(**record.configuration)
    raise BrokenLedger("no record of the ledger has a configuration; restore the topic from a copy")
