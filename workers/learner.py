"""The learner: plan, read, train, commit; then wait for the next window.

The numbered steps are those of the commit: 1 plan, 2 read, 3 train, 4 commit. Nothing is kept anywhere but on the
bus, and nothing of a window is visible before step 4 is done: a crash at any moment costs the work since the last
commit, and that work is done again from the same offsets.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

from stream_cgzsl import __version__
from stream_cgzsl.bus import Bus, Lock, Publisher
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.environment import choose_device, environment
from stream_cgzsl.errors import BusUnavailable, Cancelled, TooManyDeadLetters
from stream_cgzsl.learners.interface import Monitor, Progress
from stream_cgzsl.lineage import Configuration, Lineage
from stream_cgzsl.metrics import LearnerMetrics
from stream_cgzsl.schemas import LedgerRecord, Range
from stream_cgzsl.settings import Settings
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.commit import Commit, publish
from stream_cgzsl.windows.cuts import Cut
from stream_cgzsl.windows.expired import Gap
from stream_cgzsl.windows.gather import Gathered, Gatherer
from stream_cgzsl.windows.planner import Planner, Policies
from stream_cgzsl.windows.restore import (
    Restorer,
    configuration_at,
    ends_of,
    genesis_of,
    late_before_of,
    reconfigured,
)

log = logging.getLogger("learner")

_ROLES = ("attributes", "features", "control", "holdout", "windows", "projections", "state", "dead-letters")
_LOOK_SECONDS = 0.25
_RETRY_SECONDS = 3.0


class LearnerWorker:
    """One stream's learner, until `stop` is set.

    `rebuild` trains all windows of the ledger again instead of taking its snapshot; `accept_loss` goes on where
    records expired before they were learned.
    """

    def __init__(
        self,
        bus: Bus,
        topics: Topics,
        settings: Settings,
        metrics: LearnerMetrics,
        stop: threading.Event,
        rebuild: bool = False,
        accept_loss: bool = False,
    ) -> None:
        self._bus = bus
        self._topics = topics
        self._settings = settings
        self._metrics = metrics
        self._stop = stop
        self._rebuild = rebuild
        self._accept_loss = accept_loss
        self._device = choose_device(settings.device)
        self._configuration = Configuration(settings.learner, settings.options, int(settings.memory_gb * 1e9))
        self._lock: Lock | None = None
        self._ready = False

    def why_not_ready(self) -> str | None:
        return None if self._ready else "standing by, or not restored from the ledger yet"

    def run(self) -> None:
        """Learns window after window. A bus that is away is waited for; every other error ends the worker."""
        self._topics.require(self._bus, _ROLES)
        name = f"{self._topics.prefix}.learner"
        while not self._stop.is_set():
            try:
                with self._bus.lock(name, self._topics["control"]) as self._lock:
                    if self._stand_by():
                        with self._bus.publisher(name) as publisher:
                            self._learn(publisher)
            except Cancelled as reason:
                log.info("%s", reason)
            except BusUnavailable as error:
                self._metrics.bus_errors.inc()
                log.warning("%s; trying again in %g s", error, _RETRY_SECONDS)
                self._stop.wait(_RETRY_SECONDS)
            finally:
                self._ready = False

    def _stand_by(self) -> bool:
        """Waits until no other learner of the stream is at work; False when this one must stop before."""
        assert self._lock is not None
        if not self._lock.acquire(1.0):
            log.info("another learner is at work; standing by")
        while not self._stop.is_set():
            if self._lock.acquire(1.0):
                return True
        return False

    def _learn(self, publisher: Publisher) -> None:
        """From the ledger as it is now to the last window before `stop`."""
        records = ledger.read_all(self._bus, self._topics)
        if not records:
            records = [publish(publisher, self._topics, Commit(self._genesis()))]
            log.info("new stream %r: %s", self._topics.prefix, records[0].genesis)
        restorer = Restorer(self._bus, self._topics, records, self._device, self._alive, self._rebuild)
        lineage = restorer.at(records[-1].number)
        if self._rebuild:
            ends, control = ends_of(records[-1]), records[-1].ranges["control"][0].end
            same = Cut("describe", "rebuild", ends, control=Range(start=control, end=control))
            lineage = self._window(publisher, restorer, lineage, same)
            self._rebuild = False
        if configuration_at(records, len(records) - 1) != self._configuration:
            lineage = reconfigured(lineage, genesis_of(records), self._configuration, self._device)
        policies = self._policies()
        planner = Planner(
            self._bus, self._topics, policies, records[-1], late_before_of(records, len(records)), time.monotonic
        )
        log.info("at window %d with %d classes; waiting for events", records[-1].number, len(lineage.live))
        self._ready = True
        with closing(planner):
            while not self._stop.is_set():
                self._alive()
                cut = planner.look(records[-1])  # 1 plan
                if cut is None:
                    for role in ("attributes", "features"):
                        self._metrics.backlog.labels(role).set(planner.backlog(role))
                    planner.wait(_LOOK_SECONDS)
                    continue
                lineage = self._window(publisher, restorer, lineage, cut)

    def _window(self, publisher: Publisher, restorer: Restorer, lineage: Lineage, cut: Cut) -> Lineage:
        """One window, to its commit. The lineage after it is another one only after a rollback."""
        records = restorer.records
        number = len(records)
        changed = configuration_at(records, number - 1) != self._configuration
        clock = [time.perf_counter()]
        gathered = self._read(records, lineage, cut)  # 2 read
        clock.append(time.perf_counter())
        if cut.to is None:  # 3 train
            outcome = lineage.apply(cut.kind, gathered, _Watch(self._interrupted, self._metrics))
        else:
            before, lineage = lineage.live, restorer.at(cut.to)
            outcome = replace(lineage.roll(number), withdrawn=tuple(before - lineage.live))
        clock.append(time.perf_counter())
        generation = outcome.generation
        whole = changed or self._rebuild or cut.to is not None or number % self._settings.snapshot_every == 0
        state = lineage.snapshot() if whole else None
        record = LedgerRecord(
            number=number,
            kind=outcome.kind,
            reason=cut.reason,
            ranges={**gathered.ranges, "control": {0: cut.control}},
            holdout=cut.ends["holdout"],
            inputs=gathered.inputs,
            configuration=self._configuration.document() if changed else None,
            configuration_digest=self._configuration.digest,
            code=__version__,
            environment=environment(self._device),
            seen=int(generation.seen.sum()),
            unseen=int((~generation.seen).sum()),
            error=outcome.error,
            to=cut.to,
            until_ms=cut.until_ms,
        )
        dead = [*cut.dead, *gathered.dead]
        self._check_dead(len(dead), number)
        record = publish(  # 4 commit
            publisher, self._topics, Commit(record, generation, lineage.names, outcome.withdrawn, state, dead)
        )
        clock.append(time.perf_counter())
        records.append(record)
        self._report(record, len(dead), clock, len(state or b""))
        return lineage

    def _read(self, records: list[LedgerRecord], lineage: Lineage, cut: Cut) -> Gathered:
        number, starts = len(records), ends_of(records[-1])
        gap = Gap.find(self._bus, self._topics, starts)
        if not self._accept_loss:
            gap.refuse(self._topics, starts)
        starts = gap.after(starts)
        ends = {
            role: {p: max(end, starts[role].get(p, 0)) for p, end in spans.items()} for role, spans in cut.ends.items()
        }
        gatherer = Gatherer(self._bus, self._topics, genesis_of(records), self._configuration.memory_bytes)
        gathered = gatherer.gather(
            number, starts, ends, lineage.live, lineage.known_ids, self._alive, late_before_of(records, number)
        )
        return replace(gathered, ranges=gap.note(gathered.ranges))

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

    def _report(self, record: LedgerRecord, dead: int, clock: list[float], state_bytes: int) -> None:
        seconds = [after - before for before, after in pairwise(clock)]
        for phase, duration in zip(("read", "train", "commit"), seconds, strict=True):
            self._metrics.phase_seconds.labels(phase).observe(duration)
        self._metrics.committed(record)
        if state_bytes:
            self._metrics.state_bytes.set(state_bytes)
        accepted = {role: sum(span.accepted for span in spans.values()) for role, spans in record.ranges.items()}
        log.log(
            logging.ERROR if record.kind == "failed" else logging.INFO,
            "window %d, %s (%s): %d described, %d features, %d dead; generation %s: %d seen + %d unseen; "
            "read %.2f s, trained %.2f s, committed %.2f s%s",
            record.number,
            record.kind,
            record.reason,
            accepted["attributes"],
            accepted["features"],
            dead,
            (record.generation or "")[:12],
            record.seen,
            record.unseen,
            *seconds,
            f"; {record.error}" if record.error else "",
        )

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

    def _interrupted(self) -> bool:
        """Told to stop, or the lock is gone: another learner may be at work already."""
        return self._stop.is_set() or not (self._lock is not None and self._lock.held())


class _Watch(Monitor):
    """Shows the losses while training, and ends it when the worker must stop."""

    def __init__(self, interrupted: Callable[[], bool], metrics: LearnerMetrics) -> None:
        self._interrupted = interrupted
        self._metrics = metrics

    def progress(self, progress: Progress) -> None:
        for term, value in progress.losses.items():
            self._metrics.loss.labels(term).set(value)

    def cancelled(self) -> bool:
        return self._interrupted()
