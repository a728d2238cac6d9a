"""The scorer: follows the generations and answers samples, in batches. It keeps nothing.

At least once: answers are written and acknowledged before the samples count as read. A sample that is answered twice
after a crash gets the same request id both times.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence

import numpy as np

from stream_cgzsl.answering import Answered, Answering
from stream_cgzsl.bus import Bus, Receipt, Record, Subscription, TopicPartition, Writer, access
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
_COMMIT_SECONDS = 1.0
"""While samples come, those that are answered are committed so often. After a crash, so much is answered again."""
_LAG_SECONDS = 1.0
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
        self._partitions = 1  # of the predictions
        self._polled = 0.0

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
            self._partitions = len(self._bus.end_offsets(self._topics["predictions"]))
            underway = _Underway(samples, writer)
            looked = time.monotonic()
            while not self._stop.is_set():
                records = self._batch(samples)
                self._note(samples.assignment())
                self._projections.wait(0.0)  # raises what ended the following
                if records:
                    if not self._wait_for_model():
                        return
                    started = time.perf_counter()
                    underway.add(records, self._write(writer, records, self._now().answer(records)))
                    underway.commit_soon(self._assigned)
                    self._tell(records, started)
                else:
                    underway.settle()
                if time.monotonic() - looked > _LAG_SECONDS:
                    looked = time.monotonic()
                    self._metrics.lag.labels("samples").set(samples.waiting())
            underway.settle()

    def _batch(self, samples: Subscription) -> list[Record]:
        """Up to `batch` samples. A poll costs as much as a dozen answers: under load, each gathers `batch_seconds` of them."""
        early = self._polled + self._settings.batch_seconds - time.monotonic()
        if early > 0:
            time.sleep(early)
        self._polled = time.monotonic()
        return samples.poll(_POLL_SECONDS, self._settings.batch)

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

    def _write(self, writer: Writer, records: Sequence[Record], answered: Answered) -> Receipt:
        """Answers stand in the partition their samples stood in, where there are as many. Returns the last one's receipt."""
        topic = self._topics["predictions"]
        for record, message in zip(records, answered.predictions, strict=True):
            receipt = writer.send(topic, message, record.partition % self._partitions)
        for letter in answered.dead:
            receipt = writer.send(self._topics["dead-letters"], letter)
        for status, count in answered.statuses.items():
            self._metrics.predictions.labels(status).inc(count)
        self._metrics.scores.observe(answered.scores)
        self._metrics.margins.observe(answered.margins)
        return receipt

    def _tell(self, records: Sequence[Record], started: float) -> None:
        oldest_ms = min(record.timestamp_ms for record in records)
        self._metrics.batch_seconds.observe(time.perf_counter() - started)
        self._metrics.answer_seconds.observe(max(0.0, time.time() - oldest_ms / 1000))
        self._metrics.last_success.set_to_current_time()


class _Underway:
    """Samples whose answers are on their way. They are committed when these have arrived, without waiting for that.

    Under load, waiting for answers to arrive and for a commit to be confirmed would hold up every sample behind them.
    """

    def __init__(self, samples: Subscription, writer: Writer) -> None:
        self._samples = samples
        self._writer = writer
        self._batches: deque[tuple[Receipt, dict[TopicPartition, int]]] = deque()
        self._arrived: dict[TopicPartition, int] = {}
        self._due = 0.0

    def add(self, records: Sequence[Record], last: Receipt) -> None:
        self._batches.append((last, {TopicPartition(r.topic, r.partition): r.offset + 1 for r in records}))

    def commit_soon(self, assigned: frozenset[TopicPartition]) -> None:
        """Sees to it that answers are sent, and from time to time that samples whose answers have arrived are committed."""
        self._writer.push()
        while self._batches and self._batches[0][0].known:
            self._arrived |= self._batches.popleft()[1]
        if self._arrived and time.monotonic() >= self._due:
            self._arrived = {tp: offset for tp, offset in self._arrived.items() if tp in assigned}
            self._samples.commit_soon(self._arrived)
            self._due = time.monotonic() + _COMMIT_SECONDS

    def settle(self) -> None:
        """Waits until all answers have arrived and their samples are committed."""
        if self._batches or self._arrived:
            self._writer.flush()
            for _, offsets in self._batches:
                self._arrived |= offsets
            self._samples.commit(self._arrived)
            self._batches.clear()
            self._arrived = {}
