"""The scorer: follows the generations and answers samples, in batches. It keeps nothing.

At least once: answers are written and acknowledged before the samples count as read. A sample that is answered twice
after a crash gets the same request id both times.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

import numpy as np

from stream_cgzsl.answering import Answered, Answering
from stream_cgzsl.bus import Bus, Record, Subscription, TopicPartition, Writer, access
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.classifying import classifier, serving_device
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.evaluation.movement import movement
from stream_cgzsl.generation import Generation
from stream_cgzsl.metrics import ScorerMetrics
from stream_cgzsl.projections import Projections
from stream_cgzsl.schemas import Genesis
from stream_cgzsl.settings import Settings

log = logging.getLogger("scorer")

_POLL_SECONDS = 0.2
_COMMIT_SECONDS = 0.1
"""Under load, answers are acknowledged and samples committed so often, not at every batch."""
_LAG_SECONDS = 5.0
_RETRY_SECONDS = 3.0


class ScorerWorker:
    """One scorer of a stream, until `stop` is set. Several share the work as members of one group."""

    def __init__(
        self, bus: Bus, topics: Topics, settings: Settings, metrics: ScorerMetrics, stop: threading.Event
    ) -> None:
        self._bus = bus
        self._topics = topics
        self._settings = settings
        self._metrics = metrics
        self._stop = stop
        self._device = serving_device(settings.device)
        self._group = f"{topics.prefix}.scorer"
        self._projections = Projections()
        self._answering: Answering | None = None  # made by the thread that follows, swapped whole
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._patient_until: float | None = None

    def why_not_ready(self) -> str | None:
        if self._answering is None:
            return "no generation loaded yet"
        return None if self._assigned else "no partition of the samples assigned"

    def run(self) -> None:
        """Answers until `stop`. A bus that is away is waited for; every other error ends the worker."""
        access.require(self._bus, self._topics, "scorer")
        with Projections.follow(self._settings.bus, topics=self._topics, swapping=self._swap) as self._projections:
            while not self._stop.is_set():
                try:
                    self._answer()
                except BusUnavailable as error:
                    self._metrics.bus_errors.inc()
                    log.warning("%s; trying again in %g s", error, _RETRY_SECONDS)
                    self._stop.wait(_RETRY_SECONDS)
                finally:
                    self._assigned = frozenset()

    def _swap(self, generation: Generation, genesis: Genesis, seconds: float) -> None:
        """Everything the next answer needs is made here, beside the answers of the generation before."""
        before = None if self._answering is None else self._answering.generation
        classify = classifier(generation, self._device)
        top_k, reject_score = self._settings.top_k, self._settings.reject_score
        self._answering = Answering(generation, genesis, classify, top_k, reject_score)
        turned = np.array(list(movement(before, generation).values()))
        if turned.size:
            self._metrics.drift.labels("mean").set(turned.mean())
            self._metrics.drift.labels("max").set(turned.max())
        seen = int(generation.seen.sum())
        self._metrics.load_seconds.observe(seconds)
        self._metrics.serving(seen, len(generation.class_ids) - seen, generation.number)
        log.info("serving generation %d, %d classes", generation.number, len(generation.class_ids))

    def _answer(self) -> None:
        with self._bus.subscribe(self._topics["samples"], self._group) as samples, self._bus.writer() as writer:
            answered = _Unacknowledged(samples, writer, self._metrics)
            looked = time.monotonic()
            while not self._stop.is_set():
                records = self._batch(samples, answered.patience(_POLL_SECONDS))
                self._note(samples.assignment())
                self._projections.wait(0.0)  # raises what ended the following
                if records:
                    if not self._wait_for_model():
                        return
                    self._write(writer, self._now().answer(records))
                    answered.add(records)
                if len(records) < self._settings.batch or answered.patience(_POLL_SECONDS) <= 0:
                    answered.settle()
                if time.monotonic() - looked > _LAG_SECONDS:
                    looked = time.monotonic()
                    self._measure_lag()
            answered.settle()

    def _batch(self, samples: Subscription, patience: float) -> list[Record]:
        """Up to `batch` samples: those that are there, and those that come within `batch_seconds` of the first."""
        most = self._settings.batch
        records = samples.poll(patience, most)
        deadline = time.monotonic() + self._settings.batch_seconds
        while records and len(records) < most and (left := deadline - time.monotonic()) > 0.001:
            records += samples.poll(left, most - len(records))
        return records

    def _note(self, assigned: frozenset[TopicPartition]) -> None:
        if assigned != self._assigned:
            self._metrics.rebalances.inc()
            self._assigned = assigned

    def _wait_for_model(self) -> bool:
        """Waits for the first generation, but no sample longer than `max_wait`; False when the worker must stop."""
        while not self._stop.is_set():
            if self._patient_until is None:
                self._patient_until = time.monotonic() + self._settings.max_wait
            left = self._patient_until - time.monotonic()
            if self._projections.wait(min(max(left, 0.0), 0.5)) or left <= 0:
                return True
        return False

    def _now(self) -> Answering:
        """The newest whole generation's answers."""
        return self._answering or Answering(None, self._projections.genesis, None)

    def _write(self, writer: Writer, answered: Answered) -> None:
        topic = self._topics["predictions"]
        for message in answered.predictions:
            writer.send(topic, message)
        for letter in answered.dead:
            writer.send(self._topics["dead-letters"], letter)
        for status, count in answered.statuses.items():
            self._metrics.predictions.labels(status).inc(count)
        self._metrics.scores.observe(answered.scores)
        self._metrics.margins.observe(answered.margins)

    def _measure_lag(self) -> None:
        """How many samples of this worker's own partitions wait."""
        topic = self._topics["samples"]
        ends, done = self._bus.end_offsets(topic), self._bus.committed(self._group, topic)
        begins = self._bus.begin_offsets(topic)
        mine = [tp.partition for tp in self._assigned]
        self._metrics.lag.labels("samples").set(sum(max(0, ends[p] - done.get(p, begins[p])) for p in mine))


class _Unacknowledged:
    """Samples whose answers are on their way. Settling waits until they have arrived, then commits the samples."""

    def __init__(self, samples: Subscription, writer: Writer, metrics: ScorerMetrics) -> None:
        self._samples = samples
        self._writer = writer
        self._metrics = metrics
        self._offsets: dict[TopicPartition, int] = {}
        self._since = 0.0
        self._oldest_ms = 0

    def patience(self, idle: float) -> float:
        """How long the next samples may be waited for: `idle` seconds, or less while answers are on their way."""
        return max(0.0, self._since + _COMMIT_SECONDS - time.perf_counter()) if self._offsets else idle

    def add(self, records: Sequence[Record]) -> None:
        if not self._offsets:
            self._since = time.perf_counter()
            self._oldest_ms = min(record.timestamp_ms for record in records)
        for record in records:
            self._offsets[TopicPartition(record.topic, record.partition)] = record.offset + 1

    def settle(self) -> None:
        if not self._offsets:
            return
        self._writer.flush()
        self._samples.commit(self._offsets)
        self._metrics.batch_seconds.observe(time.perf_counter() - self._since)
        self._metrics.answer_seconds.observe(max(0.0, time.time() - self._oldest_ms / 1000))
        self._metrics.last_success.set_to_current_time()
        self._offsets = {}
