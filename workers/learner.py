"""The learner: plan, read, train, commit; then wait for the next window.

The numbered steps are those of the commit: 1 plan, 2 read, 3 train, 4 commit. Nothing is kept anywhere but on the
bus, and nothing of a window is visible before step 4 is done: a crash at any moment costs the work since the last
commit, and that work is done again from the same offsets.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import closing
from dataclasses import replace

from stream_cgzsl import __version__
from stream_cgzsl.bus import Bus, Publisher
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.environment import choose_device, environment
from stream_cgzsl.errors import BrokenLedger, Cancelled, Expired, TooManyDeadLetters, UsageError
from stream_cgzsl.evaluation.movement import movement
from stream_cgzsl.evaluation.prequential import prequential
from stream_cgzsl.generation import Generation
from stream_cgzsl.learners import BOUNDS
from stream_cgzsl.lineage import Configuration, Lineage, Outcome
from stream_cgzsl.metrics import LearnerMetrics
from stream_cgzsl.schemas import LedgerRecord, Range
from stream_cgzsl.settings import Settings
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.commit import Commit, publish
from stream_cgzsl.windows.cuts import Cut
from stream_cgzsl.windows.expired import Gap
from stream_cgzsl.windows.gather import Ends, Gathered, Gatherer
from stream_cgzsl.windows.planner import Planner, Policies, still
from stream_cgzsl.windows.restore import (
    Restorer,
    configuration_at,
    ends_of,
    genesis_of,
    late_before_of,
    reconfigured,
)
from stream_cgzsl.workers.standby import OneAtWork
from stream_cgzsl.workers.telling import Waiting, Watch, counted, tell

log = logging.getLogger("learner")

_LOOK_SECONDS = 0.25


class LearnerWorker(OneAtWork[LearnerMetrics]):
    """One stream's learner.

    `rebuild` trains all windows of the ledger again instead of taking its snapshot; `accept_loss` goes on where
    records expired before they were learned.
    """

    kind = "learner"
    locked = "control"

    def __init__(
        self,
        bus: Bus,
        topics: Topics,
        settings: Settings,
        metrics: LearnerMetrics,
        stop: threading.Event,
        rebuild: bool = False,
        accept_loss: bool = False,
        patient: bool = True,
    ) -> None:
        super().__init__(bus, topics, metrics, stop, patient)
        self._settings = settings
        self._rebuild = rebuild
        self._accept_loss = accept_loss
        self._device = choose_device(settings.device)
        if settings.learner in BOUNDS:
            raise UsageError(
                f"{settings.learner!r} keeps every example and is for benchmarks only; choose another --learner"
            )
        self._configuration = Configuration(settings.learner, settings.options, int(settings.memory_gb * 1e9))
        self._generation: Generation | None = None
        self._waiting = Waiting(metrics)
        metrics.active.set_function(lambda: float(self._at_work()))

    def _rest(self) -> None:
        self._waiting.none()

    def _work(self, publisher: Publisher) -> None:
        """From the ledger as it is now to the last window before `stop`."""
        self._why_not_ready = "not restored from the ledger yet"
        records = ledger.read_all(self._bus, self._topics)
        self._generation = self._newest(records)
        if not records:
            genesis = Commit(self._genesis())
            with counted(self._metrics):
                records = [publish(publisher, self._topics, genesis)]
            log.info("new stream %r: %s", self._topics.prefix, records[0].genesis)
        restorer = Restorer(self._bus, self._topics, records, self._device, self._alive, self._rebuild)
        self._starts(records)
        lineage = self._restored(publisher, restorer)
        if self._rebuild:
            lineage = self._window(publisher, restorer, lineage, still(records[-1], "describe", "rebuild"))
            restorer, self._rebuild = replace(restorer, rebuild=False), False
        until_ms = late_before_of(records, len(records))
        planner = Planner(self._bus, self._topics, self._policies(), records[-1], until_ms, time.monotonic)
        log.info("at window %d with %d classes; waiting for events", records[-1].number, len(lineage.live))
        self._metrics.serving(records[-1].seen, records[-1].unseen, records[-1].number)
        self._why_not_ready = None
        with closing(planner):
            while not self._stop.is_set():
                self._alive()
                cut = planner.look(records[-1])  # 1 plan
                self._waiting.noticed(len(records), planner.waiting(records[-1]))
                if cut is None:
                    planner.wait(_LOOK_SECONDS)
                    continue
                lineage = self._window(publisher, restorer, lineage, cut)

    def _restored(self, publisher: Publisher, restorer: Restorer) -> Lineage:
        """The lineage the ledger ends with, under the configuration of today."""
        records = restorer.records
        try:
            return self._configured(restorer.at(len(records) - 1), records)
        except Expired as error:
            newest = next((r.number for r in reversed(records) if r.state is not None), None)
            if newest is None or not self._accept_loss:
                raise
            log.warning("%s; going back to window %d, the last one with a snapshot", error, newest)
            cut = replace(still(records[-1], "rollback", "accept-loss"), to=newest)
            return self._window(publisher, restorer, restorer.at(newest), cut)

    def _newest(self, records: list[LedgerRecord]) -> Generation | None:
        """The generation that the next window is compared with; None where it is gone. Nothing else depends on it."""
        if not records or records[-1].generation is None:
            return None
        try:
            return ledger.load_generation(self._bus, self._topics, records[-1])
        except (ledger.Incomplete, BrokenLedger) as reason:
            log.warning("what the next window changes will not be told: %s", reason)
            return None

    def _configured(self, lineage: Lineage, records: list[LedgerRecord]) -> Lineage:
        return reconfigured(lineage, genesis_of(records), self._configuration, self._device)

    def _window(self, publisher: Publisher, restorer: Restorer, lineage: Lineage, cut: Cut) -> Lineage:
        """One window, to its commit. The lineage after it is another one only after a rollback."""
        records = restorer.records
        number = len(records)
        clock = [time.perf_counter()]
        lineage = self._configured(lineage, records)
        gathered = self._read(records, lineage, cut)  # 2 read
        dead = [*cut.dead, *gathered.dead]
        self._check_dead(len(dead), number)
        clock.append(time.perf_counter())
        before, watch = self._generation, Watch(self._interrupted, self._metrics)
        asked = prequential(before, gathered.window)
        if cut.to is None:  # 3 train
            outcome = lineage.apply(cut.kind, gathered, watch)
        else:
            lineage, outcome = self._roll_back(restorer, lineage, gathered, cut.to)
        clock.append(time.perf_counter())
        generation = outcome.generation
        changed = configuration_at(records, number - 1) != lineage.configuration
        whole = changed or self._rebuild or cut.to is not None or number % self._settings.snapshot_every == 0
        state = lineage.snapshot() if whole else None
        record = LedgerRecord(
            number=number,
            kind=outcome.kind,
            reason=cut.reason,
            ranges={**gathered.ranges, "control": {0: cut.control}},
            holdout=cut.ends["holdout"],
            inputs=gathered.inputs,
            configuration=lineage.configuration.document() if changed else None,
            configuration_digest=lineage.configuration.digest,
            code=__version__,
            environment=environment(self._device),
            seen=int(generation.seen.sum()),
            unseen=int((~generation.seen).sum()),
            prequential=asked,
            losses=watch.last(),
            error=outcome.error,
            to=cut.to if outcome.kind == "rollback" else None,
            until_ms=cut.until_ms,
        )
        commit = Commit(record, generation, lineage.names, outcome.withdrawn, state, dead)
        with counted(self._metrics):
            record = publish(publisher, self._topics, commit)  # 4 commit
        clock.append(time.perf_counter())
        records.append(record)
        self._generation = generation
        self._metrics.turned(movement(before, generation))
        tell(self._metrics, record, len(dead), clock, len(state or b""), self._device)
        return lineage

    def _roll_back(self, restorer: Restorer, lineage: Lineage, gathered: Gathered, to: int) -> tuple[Lineage, Outcome]:
        """The lineage after window `to`; where it cannot be had any more, that is a failed window and all stays."""
        try:
            earlier = self._configured(restorer.at(to), restorer.records)
        except (Expired, BrokenLedger, UsageError) as error:
            failed = lineage.apply("failed", gathered)
            return lineage, replace(failed, error=f"no way back to generation {to}: {error}")
        outcome = earlier.roll(gathered.window.number)
        return earlier, replace(outcome, withdrawn=tuple(sorted(lineage.live - earlier.live)))

    def _read(self, records: list[LedgerRecord], lineage: Lineage, cut: Cut) -> Gathered:
        number = len(records)
        starts, gap = self._starts(records)
        ends = {
            role: {p: max(end, starts[role].get(p, 0)) for p, end in spans.items()} for role, spans in cut.ends.items()
        }
        gatherer = Gatherer(self._bus, self._topics, genesis_of(records), self._configuration.memory_bytes)
        gathered = gatherer.gather(
            number, starts, ends, lineage.live, lineage.known_ids, self._alive, late_before_of(records, number)
        )
        return replace(gathered, ranges=gap.note(gathered.ranges))

    def _starts(self, records: list[LedgerRecord]) -> tuple[Ends, Gap]:
        """Where the next window starts, and what expired before it. Raises `Expired` unless that is accepted."""
        starts = ends_of(records[-1])
        gap = Gap.find(self._bus, self._topics, starts)
        if not self._accept_loss:
            gap.refuse(self._topics, starts)
        return gap.after(starts), gap

    def _check_dead(self, dead: int, number: int) -> None:
        limit = self._settings.dead_letter_limit
        if limit is not None and dead > limit:
            raise TooManyDeadLetters(
                f"{dead} records of window {number} are unusable and --dead-letter-limit is {limit}; nothing of the "
                "window was committed: mend the producer, or raise the limit and start again"
            )

    def _policies(self) -> Policies:
        s = self._settings
        return Policies(s.quiet_seconds, s.count, s.max_age, s.event_time, s.event_delay, s.event_idle)

    def _genesis(self) -> LedgerRecord:
        """Record 0: what never changes, and where each topic began."""
        genesis = self._settings.genesis()
        first = {
            role: {p: Range(start=begin, end=begin) for p, begin in self._bus.begin_offsets(self._topics[role]).items()}
            for role in ("attributes", "features", "control")
        }
        return LedgerRecord(
            number=0,
            kind="genesis",
            reason="genesis",
            genesis=genesis,
            ranges=first,
            holdout=self._bus.begin_offsets(self._topics["holdout"]),
            configuration=self._configuration.document(),
            configuration_digest=self._configuration.digest,
            code=__version__,
            environment=environment(self._device),
        )

    def _alive(self) -> None:
        if self._interrupted():
            raise Cancelled("stopped in mid-window; it will be read and trained again from its offsets")
