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
from stream_cgzsl.errors import BrokenLedger, BusUnavailable, Cancelled, Expired, TooManyDeadLetters, UsageError
from stream_cgzsl.evaluation.prequential import prequential
from stream_cgzsl.evaluation.projection_drift import projection_drift
from stream_cgzsl.history.publish import configuration_fields, genesis_record, publish_window
from stream_cgzsl.history.restore import Restorer, configuration_of
from stream_cgzsl.history.stream_learner import (
    REMEMBERED_WINDOWS,
    Configuration,
    Outcome,
    Step,
    StreamLearner,
    apply_window,
)
from stream_cgzsl.learners import BOUNDS, keeps
from stream_cgzsl.runtime.devices import choose_device
from stream_cgzsl.runtime.environment import environment
from stream_cgzsl.runtime.metrics import LearnerMetrics
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import LedgerRecord
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import load_generation
from stream_cgzsl.version import __version__
from stream_cgzsl.windows import gather
from stream_cgzsl.windows.commit import Commit, write_commit
from stream_cgzsl.windows.cuts import Cut
from stream_cgzsl.windows.gaps import Gap
from stream_cgzsl.windows.gather import Gathered, Gatherer
from stream_cgzsl.windows.identity import refuse_changed_topics
from stream_cgzsl.windows.ledger import Incomplete
from stream_cgzsl.windows.offsets import Ends, ends_of
from stream_cgzsl.windows.planner import Planner, Policies, empty_cut
from stream_cgzsl.windows.recorded import Ledger, linked
from stream_cgzsl.workers.leader import LeaderWorker
from stream_cgzsl.workers.learner_reporting import (
    PHASES,
    Backlog,
    CommitTimes,
    TrainingMonitor,
    count_outcome,
    report_window,
)
from stream_cgzsl.workers.snapshot_pace import SnapshotPace

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
        if keeps(settings.learner) == "exemplars" and not settings.allow_exemplars:
            raise UsageError(
                f"{settings.learner!r} keeps a few examples of each class in its state, on the bus; say that it may "
                "with --allow-exemplars, or choose another --learner"
            )
        memory, decoders = int(settings.memory_gb * 1e9), topics.training_decoders()
        self._configuration = Configuration(settings.learner, settings.options, memory, decoders)
        self._generation: Generation | None = None
        self._pace = SnapshotPace(settings.snapshot_every)
        self._commits = CommitTimes()
        self._rest: Cut | None = None  # the cut that the last window ended before
        self._rest_dead = 0  # in the windows of this cut so far
        self._attempt: LedgerRecord | None = None  # of a commit whose outcome is unknown
        self._backlog = Backlog(metrics)
        metrics.active.set_function(lambda: float(self._is_leader()))

    def _stop_leading(self) -> None:
        self._backlog.clear()

    def _lead(self, publisher: Publisher) -> None:
        """From the ledger as it is now to the last window before `stop`."""
        self._why_not_ready = "not restored from the ledger yet"
        self._rest, self._rest_dead = None, 0
        recorded = Ledger.open(self._bus, self._topics) or self._begin(publisher)
        self._generation = self._newest(recorded.last)
        self._count_attempt(recorded.last)
        restorer = Restorer(self._bus, self._topics, recorded, self._device, self._alive, self._rebuild)
        self._starts(recorded)
        learner = self._restore(publisher, restorer)
        if self._rebuild:
            learner = self._window(publisher, restorer, learner, empty_cut(recorded.last, "describe", "rebuild"))
            restorer, self._rebuild = replace(restorer, rebuild=False), False
        last = recorded.last
        planner = Planner(self._bus, self._topics, self._policies(), last, recorded.late_ms, time.monotonic)
        log.info("at window %d with %d classes; waiting for events", last.number, len(learner.live))
        self._metrics.serving(last.seen, last.unseen, last.number)
        written = next((r.number for r in recorded.back(last.number) if r.state is not None), last.number)
        self._pace.restored(last.number - written)
        self._why_not_ready = None
        with closing(planner):
            while not self._stop.is_set():
                self._alive()
                cut = self._rest or planner.look(recorded.last)  # 1 plan
                self._backlog.update(recorded.last.number + 1, planner.waiting(recorded.last))
                if cut is None and self._pace.overdue():
                    cut = empty_cut(recorded.last, "describe", "snapshot")
                if cut is None:
                    planner.wait(_LOOK_SECONDS)
                    continue
                learner = self._window(publisher, restorer, learner, cut)

    def _restore(self, publisher: Publisher, restorer: Restorer) -> StreamLearner:
        """The learner after the last window of the ledger, under today's configuration."""
        recorded = restorer.ledger
        try:
            return restorer.at(recorded.last.number).with_configuration(self._configuration)
        except Expired as error:
            newest = next((r.number for r in recorded.back(recorded.last.number) if r.state is not None), None)
            if newest is None or not self._accept_loss:
                raise
            log.warning("%s; going back to window %d, the last one with a snapshot", error, newest)
            cut = empty_cut(recorded.last, "rollback", "accept-loss", to=newest)
            return self._window(publisher, restorer, restorer.at(newest), cut)

    def _begin(self, publisher: Publisher) -> Ledger:
        """A new stream's ledger, with its genesis."""
        with count_outcome(self._metrics):
            first = genesis_record(self._bus, self._topics, self._settings.genesis(), self._configuration, self._device)
            genesis = write_commit(publisher, self._topics, Commit(first))
        log.info("new stream %r: %s", self._topics.prefix, genesis.genesis)
        return Ledger(self._bus, self._topics, genesis, genesis)

    def _count_attempt(self, last: LedgerRecord) -> None:
        """Counts a window whose commit had an unknown outcome, where the ledger says that it was committed."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None and (attempt.number, attempt.inputs) == (last.number, last.inputs):
            self._metrics.committed(last)

    def _newest(self, last: LedgerRecord) -> Generation | None:
        """The generation that the next window is compared with; None where it is gone. Only metrics depend on it."""
        if last.generation is None:
            return None
        try:
            return load_generation(self._bus, self._topics, last)
        except (Incomplete, BrokenLedger) as reason:
            log.warning("metrics will not show what the next window changes: %s", reason)
            return None

    def _window(self, publisher: Publisher, restorer: Restorer, learner: StreamLearner, cut: Cut) -> StreamLearner:
        """One window, up to its commit. Returns the learner after it."""
        recorded = restorer.ledger
        number = recorded.last.number + 1
        clock = [time.perf_counter()]
        gathered = self._read(recorded, learner, cut)  # 2 read
        dead = [*(() if gathered.short else cut.dead), *gathered.dead]
        self._check_dead(self._rest_dead + len(dead), number)
        self._rest, self._rest_dead = (cut, self._rest_dead + len(dead)) if gathered.short else (None, 0)
        cut = cut.shortened() if gathered.short else cut
        clock.append(time.perf_counter())
        before, live, monitor = self._generation, learner.live, TrainingMonitor(self._interrupted, self._metrics)
        tested = prequential(before, gathered.window)
        learner, outcome = self._train(restorer, learner, gathered, cut, monitor)  # 3 train
        clock.append(time.perf_counter())
        old = configuration_of(recorded, recorded.last)
        needed = old != learner.configuration or self._rebuild or cut.to is not None or cut.policy == "snapshot"
        state = learner.snapshot() if needed or self._pace.due(number, outcome.generation) else None
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
            remembered=REMEMBERED_WINDOWS,
            **configuration_fields(learner.configuration, old),
        )
        record = linked(record, recorded.last)
        made = outcome.generation
        rows = len(made.class_ids if made.delta is None else made.delta.class_ids)
        size = len(state or b"") + 4 * made.features * rows
        self._commits.warn(size, publisher.timeout_seconds)
        try:
            with count_outcome(self._metrics):  # 4 commit
                record = publish_window(
                    publisher, self._topics, record, learner, outcome, live, state, dead, recorded.last
                )
        except BusUnavailable:
            self._attempt = record
            raise
        clock.append(time.perf_counter())
        recorded.append(record)
        self._pace.committed(None if state is None else len(state))
        self._generation = outcome.generation
        self._metrics.turned(projection_drift(before, outcome.generation))
        seconds = {phase: end - start for phase, start, end in zip(PHASES, clock, clock[1:], strict=False)}
        report_window(self._metrics, record, len(dead), seconds, len(state or b""), self._device)
        self._commits.took(size, seconds["commit"])
        published = record.projections.count if record.projections else 0
        self._metrics.made(made.delta is None, seconds["train"], published, made.features)
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

    def _read(self, recorded: Ledger, learner: StreamLearner, cut: Cut) -> Gathered:
        starts, gap = self._starts(recorded)
        ends = {
            role: {p: max(end, starts[role].get(p, 0)) for p, end in spans.items()} for role, spans in cut.ends.items()
        }
        gatherer = Gatherer(self._bus, self._topics, recorded.genesis, self._configuration.memory_bytes)
        number, late, limit = recorded.last.number + 1, recorded.late_ms, gather.DEAD_BYTES
        gathered = gatherer.gather(number, starts, ends, learner.live, learner.known_ids, self._alive, late, limit)
        return replace(gathered, ranges=gap.note(gathered.ranges))

    def _starts(self, recorded: Ledger) -> tuple[Ends, Gap]:
        """Where the next window starts, and what expired before it. Raises `Expired` unless that is accepted."""
        refuse_changed_topics(self._bus, self._topics, recorded)
        starts = ends_of(recorded.last)
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

    def _alive(self) -> None:
        if self._interrupted():
            raise Cancelled("stopped in mid-window; it will be read and trained again from its offsets")
