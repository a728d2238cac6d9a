"""The learner: plan, read, train, commit; then wait for the next window.

The numbered steps are those of the commit: 1 plan, 2 read, 3 train, 4 commit. All state is on the bus, and nothing of a
window is visible before step 4 is done: a crash at any moment costs the work since the last commit, which is then done
again from the same offsets.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace

from stream_cgzsl.bus import Bus, Publisher
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger, Cancelled, Expired, TooManyDeadLetters, UsageError
from stream_cgzsl.evaluation.prequential import prequential
from stream_cgzsl.evaluation.projection_drift import projection_drift
from stream_cgzsl.history.publish import configuration_fields, publish_window
from stream_cgzsl.history.restore import Restorer, configuration_at
from stream_cgzsl.history.stream_learner import Configuration, Outcome, Step, StreamLearner, apply_window
from stream_cgzsl.learners import BOUNDS, keeps, streams
from stream_cgzsl.runtime.devices import choose_device
from stream_cgzsl.runtime.environment import environment
from stream_cgzsl.runtime.metrics import LearnerMetrics
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import LedgerRecord, Range
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import load_generation
from stream_cgzsl.version import __version__
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.commit import Commit, write_commit
from stream_cgzsl.windows.cuts import Cut
from stream_cgzsl.windows.gaps import Gap
from stream_cgzsl.windows.gather import Gathered, Gatherer
from stream_cgzsl.windows.offsets import Ends, ends_of
from stream_cgzsl.windows.planner import Planner, Policies, empty_cut
from stream_cgzsl.workers.leader import LeaderWorker
from stream_cgzsl.workers.learner_reporting import PHASES, Backlog, TrainingMonitor, count_outcome, report_window

log = logging.getLogger("learner")

_LOOK_SECONDS = 0.25

Committed = Callable[[LedgerRecord, Mapping[str, float]], None]
"""Called after each commit with the ledger record and the seconds of each phase: read, train, commit."""


class LearnerWorker(LeaderWorker[LearnerMetrics]):
    """One stream's learner.

    `rebuild` trains all windows of the ledger again instead of using its snapshot; `accept_loss` continues where
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
        committed: Committed = lambda *_: None,
    ) -> None:
        super().__init__(bus, topics, metrics, stop, patient)
        self._settings = settings
        self._rebuild = rebuild
        self._accept_loss = accept_loss
        self._committed = committed
        self._device = choose_device(settings.device)
        if settings.learner in BOUNDS:
            raise UsageError(
                f"{settings.learner!r} keeps every example and is for benchmarks only; choose another --learner"
            )
        if not streams(settings.learner):
            raise UsageError(
                f"{settings.learner!r} scores through an encoder, which a stream cannot publish yet: it is for "
                "comparisons without a stream; choose another --learner"
            )
        if keeps(settings.learner) == "exemplars" and not settings.allow_exemplars:
            raise UsageError(
                f"{settings.learner!r} keeps a few examples of each class in its state, on the bus; say that it may with "
                "--allow-exemplars, or choose another --learner"
            )
        self._configuration = Configuration(settings.learner, settings.options, int(settings.memory_gb * 1e9))
        self._generation: Generation | None = None
        self._backlog = Backlog(metrics)
        metrics.active.set_function(lambda: float(self._is_leader()))

    def _stop_leading(self) -> None:
        self._backlog.clear()

    def _lead(self, publisher: Publisher) -> None:
        """From the ledger as it is now to the last window before `stop`."""
        self._why_not_ready = "not restored from the ledger yet"
        records = ledger.read_all(self._bus, self._topics)
        self._generation = self._newest(records)
        if not records:
            genesis = Commit(self._genesis())
            with count_outcome(self._metrics):
                records = [write_commit(publisher, self._topics, genesis)]
            log.info("new stream %r: %s", self._topics.prefix, records[0].genesis)
        restorer = Restorer(self._bus, self._topics, records, self._device, self._alive, self._rebuild)
        self._starts(records)
        learner = self._restore(publisher, restorer)
        if self._rebuild:
            learner = self._window(publisher, restorer, learner, empty_cut(records[-1], "describe", "rebuild"))
            restorer, self._rebuild = replace(restorer, rebuild=False), False
        until_ms = ledger.late_before(records, len(records))
        planner = Planner(self._bus, self._topics, self._policies(), records[-1], until_ms, time.monotonic)
        log.info("at window %d with %d classes; waiting for events", records[-1].number, len(learner.live))
        self._metrics.serving(records[-1].seen, records[-1].unseen, records[-1].number)
        self._why_not_ready = None
        with closing(planner):
            while not self._stop.is_set():
                self._alive()
                cut = planner.look(records[-1])  # 1 plan
                self._backlog.update(len(records), planner.waiting(records[-1]))
                if cut is None:
                    planner.wait(_LOOK_SECONDS)
                    continue
                learner = self._window(publisher, restorer, learner, cut)

    def _restore(self, publisher: Publisher, restorer: Restorer) -> StreamLearner:
        """The learner after the last window of the ledger, under today's configuration."""
        records = restorer.records
        try:
            return restorer.at(len(records) - 1).with_configuration(self._configuration)
        except Expired as error:
            newest = next((r.number for r in reversed(records) if r.state is not None), None)
            if newest is None or not self._accept_loss:
                raise
            log.warning("%s; going back to window %d, the last one with a snapshot", error, newest)
            cut = empty_cut(records[-1], "rollback", "accept-loss", to=newest)
            return self._window(publisher, restorer, restorer.at(newest), cut)

    def _newest(self, records: list[LedgerRecord]) -> Generation | None:
        """The generation that the next window is compared with; None where it is gone. Only metrics depend on it."""
        if not records or records[-1].generation is None:
            return None
        try:
            return load_generation(self._bus, self._topics, records[-1])
        except (ledger.Incomplete, BrokenLedger) as reason:
            log.warning("metrics will not show what the next window changes: %s", reason)
            return None

    def _window(self, publisher: Publisher, restorer: Restorer, learner: StreamLearner, cut: Cut) -> StreamLearner:
        """One window, up to its commit. Returns the learner after it."""
        records = restorer.records
        number = len(records)
        clock = [time.perf_counter()]
        gathered = self._read(records, learner, cut)  # 2 read
        dead = [*cut.dead, *gathered.dead]
        self._check_dead(len(dead), number)
        clock.append(time.perf_counter())
        before, live, monitor = self._generation, learner.live, TrainingMonitor(self._interrupted, self._metrics)
        tested = prequential(before, gathered.window)
        learner, outcome = self._train(restorer, learner, gathered, cut, monitor)  # 3 train
        clock.append(time.perf_counter())
        old = configuration_at(records, number - 1)
        whole = old != learner.configuration or self._rebuild or cut.to is not None
        state = learner.snapshot() if whole or number % self._settings.snapshot_every == 0 else None
        record = LedgerRecord(
            number=number,
            kind=outcome.kind,
            policy=cut.policy,
            reason=cut.reason,
            ranges={**gathered.ranges, "control": {0: cut.control}},
            holdout=cut.ends["holdout"],
            inputs=gathered.inputs.result(),
            code=__version__,
            environment=environment(self._device),
            prequential=tested,
            losses=monitor.last(),
            to=cut.to if outcome.kind == "rollback" else None,
            until_ms=cut.until_ms,
            **configuration_fields(learner.configuration, old),
        )
        with count_outcome(self._metrics):
            record = publish_window(publisher, self._topics, record, learner, outcome, live, state, dead)  # 4 commit
        clock.append(time.perf_counter())
        records.append(record)
        self._generation = outcome.generation
        self._metrics.turned(projection_drift(before, outcome.generation))
        seconds = {phase: end - start for phase, start, end in zip(PHASES, clock, clock[1:], strict=False)}
        report_window(self._metrics, record, len(dead), seconds, len(state or b""), self._device)
        self._committed(record, seconds)
        return learner

    def _train(
        self, restorer: Restorer, learner: StreamLearner, gathered: Gathered, cut: Cut, monitor: TrainingMonitor
    ) -> tuple[StreamLearner, Outcome]:
        """A rollback to a generation that cannot be restored any more is a failed window, and nothing changes."""
        step = Step(gathered.window.number, cut.kind, cut.to, self._configuration)
        try:
            return apply_window(learner, step, gathered, restorer.at, monitor)
        except (Expired, BrokenLedger, UsageError) as error:
            if cut.to is None:
                raise
            failed = replace(step, kind="failed", to=None)
            learner, outcome = apply_window(learner, failed, gathered, restorer.at)
            return learner, replace(outcome, error=f"generation {cut.to} cannot be restored: {error}")

    def _read(self, records: list[LedgerRecord], learner: StreamLearner, cut: Cut) -> Gathered:
        number = len(records)
        starts, gap = self._starts(records)
        ends = {
            role: {p: max(end, starts[role].get(p, 0)) for p, end in spans.items()} for role, spans in cut.ends.items()
        }
        gatherer = Gatherer(self._bus, self._topics, ledger.genesis_of(records), self._configuration.memory_bytes)
        late = ledger.late_before(records, number)
        gathered = gatherer.gather(number, starts, ends, learner.live, learner.known_ids, self._alive, late)
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
                f"{dead} records of window {number} are invalid and --dead-letter-limit is {limit}; nothing of the "
                "window was committed: fix the producer, or raise the limit and start again"
            )

    def _policies(self) -> Policies:
        s = self._settings
        return Policies(s.quiet_seconds, s.count, s.max_age, s.event_time, s.event_delay, s.event_idle)

    def _genesis(self) -> LedgerRecord:
        """Record 0: what never changes, and where each topic begins."""
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
            code=__version__,
            environment=environment(self._device),
            **configuration_fields(self._configuration, None),
        )

    def _alive(self) -> None:
        if self._interrupted():
            raise Cancelled("stopped in mid-window; it will be read and trained again from its offsets")
