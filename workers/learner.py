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
from itertools import pairwise

from stream_cgzsl import __version__
from stream_cgzsl.bus import Bus, Publisher
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.environment import choose_device, environment
from stream_cgzsl.errors import BusUnavailable, Cancelled
from stream_cgzsl.learners.interface import Monitor, Progress
from stream_cgzsl.lineage import Configuration, Lineage
from stream_cgzsl.metrics import LearnerMetrics
from stream_cgzsl.schemas import LedgerRecord, Range
from stream_cgzsl.settings import Settings
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.commit import Commit, publish
from stream_cgzsl.windows.cuts import Cut, Describe, Markers, Stream
from stream_cgzsl.windows.gather import Gatherer
from stream_cgzsl.windows.restore import configuration_at, ends_of, genesis_of, reconfigured, restore

log = logging.getLogger("learner")

_ROLES = ("attributes", "features", "control", "holdout", "windows", "projections", "state", "dead-letters")
_LOOK_SECONDS = 0.25
_RETRY_SECONDS = 3.0


class LearnerWorker:
    """One stream's learner, until `stop` is set."""

    def __init__(
        self, bus: Bus, topics: Topics, settings: Settings, metrics: LearnerMetrics, stop: threading.Event
    ) -> None:
        self._bus = bus
        self._topics = topics
        self._settings = settings
        self._metrics = metrics
        self._stop = stop
        self._device = choose_device(settings.device)
        self._configuration = Configuration(settings.learner, settings.options, int(settings.memory_gb * 1e9))
        self._ready = False

    def why_not_ready(self) -> str | None:
        return None if self._ready else "not restored from the ledger yet"

    def run(self) -> None:
        """Learns window after window. A bus that is away is waited for; every other error ends the worker."""
        self._topics.require(self._bus, _ROLES)
        while not self._stop.is_set():
            try:
                with self._bus.publisher(f"{self._topics.prefix}.learner") as publisher:
                    self._learn(publisher)
            except Cancelled:
                log.info("stopped in mid-training; the window will be trained again from its offsets")
            except BusUnavailable as error:
                self._ready = False
                self._metrics.bus_errors.inc()
                log.warning("%s; trying again in %g s", error, _RETRY_SECONDS)
                self._stop.wait(_RETRY_SECONDS)

    def _learn(self, publisher: Publisher) -> None:
        """From the ledger as it is now to the last window before `stop`."""
        records = ledger.read_all(self._bus, self._topics)
        if not records:
            records = [publish(publisher, self._topics, Commit(self._genesis()))]
            log.info("new stream %r: %s", self._topics.prefix, records[0].genesis)
        last, genesis = records[-1], genesis_of(records)
        lineage = restore(self._bus, self._topics, records, self._device, self._alive)
        changed = configuration_at(records, last.number) != self._configuration
        if changed:
            lineage = reconfigured(lineage, genesis, self._configuration, self._device)
        gatherer = Gatherer(self._bus, self._topics, genesis, self._configuration.memory_bytes)
        stream = Stream(self._bus, self._topics, time.monotonic)
        describe = Describe(self._settings.quiet_seconds)
        control = last.ranges["control"][0].end
        log.info("restored at window %d; %d classes; waiting for events", last.number, len(lineage.live))
        self._ready = True
        with closing(Markers(self._bus, self._topics, control)) as markers:
            while not self._stop.is_set():
                stream.starts = ends_of(last)
                cut = markers.look(stream) or describe.look(stream)  # 1 plan
                if cut is None:
                    markers.wait(_LOOK_SECONDS)
                    continue
                if cut.control is None:
                    dead, span = markers.take_dead()
                    cut = Cut(cut.kind, cut.reason, cut.ends, dead, span)
                last = self._window(publisher, lineage, gatherer, last, cut, changed)
                changed = False

    def _window(
        self, publisher: Publisher, lineage: Lineage, gatherer: Gatherer, last: LedgerRecord, cut: Cut, changed: bool
    ) -> LedgerRecord:
        number = last.number + 1
        clock = [time.perf_counter()]
        gathered = gatherer.gather(  # 2 read
            number, ends_of(last), cut.ends, lineage.live, lineage.known_ids, self._alive
        )
        clock.append(time.perf_counter())
        outcome = lineage.apply(cut.kind, gathered, _Watch(self._stop, self._metrics))  # 3 train
        clock.append(time.perf_counter())
        generation = outcome.generation
        state = lineage.snapshot() if number % self._settings.snapshot_every == 0 or changed else None
        record = LedgerRecord(
            number=number,
            kind=outcome.kind,
            reason=cut.reason,
            ranges={**gathered.ranges, "control": {0: cut.control or Range(start=0, end=0)}},
            holdout=cut.ends["holdout"],
            inputs=gathered.inputs,
            configuration=self._configuration.document() if changed else None,
            configuration_digest=self._configuration.digest,
            code=__version__,
            environment=environment(self._device),
            seen=int(generation.seen.sum()),
            unseen=int((~generation.seen).sum()),
            error=outcome.error,
        )
        dead = [*cut.dead, *gathered.dead]
        record = publish(  # 4 commit
            publisher, self._topics, Commit(record, generation, lineage.names, outcome.withdrawn, state, dead)
        )
        clock.append(time.perf_counter())
        self._report(record, len(dead), clock, len(state or b""))
        return record

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
        if self._stop.is_set():
            raise Cancelled("stopped while reading; the window will be read again from its offsets")


class _Watch(Monitor):
    """Shows the losses while training, and ends it when the worker must stop."""

    def __init__(self, stop: threading.Event, metrics: LearnerMetrics) -> None:
        self._stop = stop
        self._metrics = metrics

    def progress(self, progress: Progress) -> None:
        for term, value in progress.losses.items():
            self._metrics.loss.labels(term).set(value)

    def cancelled(self) -> bool:
        return self._stop.is_set()
