"""The scorer: follows the generations and answers samples, in batches. It keeps no state.

At least once: answers are written and acknowledged before the samples are committed. A sample that is answered twice
after a crash gets the same request id both times.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing

import numpy as np

from stream_cgzsl.bus import Bus, Receipt, Record, Subscription, TopicPartition, Writer, acls
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.evaluation.projection_drift import projection_drift
from stream_cgzsl.runtime.devices import choose_scoring_device
from stream_cgzsl.runtime.metrics import ScorerMetrics
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import Genesis
from stream_cgzsl.serving.answers import AnsweredBatch, Answerer, classifier
from stream_cgzsl.serving.follower import Followed
from stream_cgzsl.serving.generation import Generation

log = logging.getLogger("scorer")

_POLL_SECONDS = 0.2
_COMMIT_SECONDS = 1.0
"""How often answered samples are committed under load. After a crash, samples of this long are answered again."""
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
        self._device = choose_scoring_device(settings.device)
        self._group = f"{topics.prefix}.scorer"
        self._decoder = topics.decoders.get("samples")
        self._followed: Followed[Answerer] | None = None
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._patient_until: float | None = None
        self._partitions = 1  # of the predictions
        self._polled = 0.0

    def why_not_ready(self) -> str | None:
        if self._followed is None or self._followed.current is None:
            return "no generation loaded yet"
        return None if self._assigned else "no partition of the samples assigned"

    def run(self) -> None:
        """Answers until `stop`. An unavailable bus is waited for; every other error ends the worker."""
        acls.require(self._bus, self._topics, "scorer")
        with closing(Followed(self._settings.bus, self._topics, self._prepare)) as self._followed:
            while not self._stop.is_set():
                try:
                    self._answer(self._followed)
                except BusUnavailable as error:
                    self._metrics.bus_errors.inc()
                    log.warning("%s; trying again in %g s", error, _RETRY_SECONDS)
                    self._stop.wait(_RETRY_SECONDS)
                finally:
                    self._assigned = frozenset()

    def _prepare(self, generation: Generation, genesis: Genesis, seconds: float) -> Answerer:
        """What answers with a new generation, made while the one before still answers."""
        classify = classifier(generation, self._device)
        settings = self._settings
        answerer = Answerer(generation, genesis, classify, settings.top_k, settings.reject_score, self._decoder)
        current = None if self._followed is None else self._followed.current
        before = None if current is None else current.generation
        turned = np.array(list(projection_drift(before, generation).values()))
        if turned.size:
            self._metrics.drift.labels("mean").set(turned.mean())
            self._metrics.drift.labels("max").set(turned.max())
        seen = int(generation.seen.sum())
        self._metrics.load_seconds.observe(seconds)
        self._metrics.serving(seen, len(generation.class_ids) - seen, generation.number)
        log.info("serving generation %d, %d classes", generation.number, len(generation.class_ids))
        return answerer

    def _answer(self, followed: Followed[Answerer]) -> None:
        with self._bus.subscribe(self._topics["samples"], self._group) as samples, self._bus.writer() as writer:
            self._partitions = len(self._bus.end_offsets(self._topics["predictions"]))
            in_flight = _InFlight(samples, writer)
            looked = time.monotonic()
            while not self._stop.is_set():
                records = self._batch(samples)
                self._note_assignment(samples.assignment())
                followed.check()
                if records:
                    if not self._wait_for_model(followed):
                        return
                    started = time.perf_counter()
                    answerer = followed.current or Answerer(None, followed.genesis, None, decoder=self._decoder)
                    in_flight.add(records, self._write(writer, records, answerer.answer(records)))
                    in_flight.commit_soon(self._assigned)
                    self._observe(records, started)
                else:
                    in_flight.settle()
                if time.monotonic() - looked > _LAG_SECONDS:
                    looked = time.monotonic()
                    self._metrics.lag.labels("samples").set(samples.lag())
                    self._metrics.ledger.set(followed.newest)
            in_flight.settle()

    def _batch(self, samples: Subscription) -> list[Record]:
        """Up to `batch` samples. A poll costs as much as a dozen answers: under load, one every `batch_seconds`."""
        early = self._polled + self._settings.batch_seconds - time.monotonic()
        if early > 0:
            time.sleep(early)
        self._polled = time.monotonic()
        return samples.poll(_POLL_SECONDS, self._settings.batch)

    def _note_assignment(self, assigned: frozenset[TopicPartition]) -> None:
        if assigned != self._assigned:
            self._metrics.rebalances.inc()
            self._assigned = assigned

    def _wait_for_model(self, followed: Followed[Answerer]) -> bool:
        """Waits for the first generation, but no sample longer than `max_wait`; False when the worker must stop."""
        while not self._stop.is_set():
            if self._patient_until is None:
                self._patient_until = time.monotonic() + self._settings.max_wait
            left = self._patient_until - time.monotonic()
            if followed.wait(min(max(left, 0.0), 0.5)) or left <= 0:
                return True
        return False

    def _write(self, writer: Writer, records: Sequence[Record], answered: AnsweredBatch) -> Receipt:
        """Writes answers to the partition of their sample, where there are as many. Returns the last one's receipt."""
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

    def _observe(self, records: Sequence[Record], started: float) -> None:
        oldest_ms = min(record.timestamp_ms for record in records)
        self._metrics.batch_seconds.observe(time.perf_counter() - started)
        self._metrics.answer_seconds.observe(max(0.0, time.time() - oldest_ms / 1000))
        self._metrics.last_success.set_to_current_time()


class _InFlight:
    """Samples whose answers are not acknowledged yet. They are committed once they are, without waiting for it.

    Under load, waiting for acknowledgements and for commits would delay every sample behind them.
    """

    def __init__(self, samples: Subscription, writer: Writer) -> None:
        self._samples = samples
        self._writer = writer
        self._batches: deque[tuple[Receipt, dict[TopicPartition, int]]] = deque()
        self._acknowledged: dict[TopicPartition, int] = {}
        self._due = 0.0

    def add(self, records: Sequence[Record], last: Receipt) -> None:
        ends = {record.partition: record.offset + 1 for record in records}
        topic = records[0].topic
        self._batches.append((last, {TopicPartition(topic, partition): end for partition, end in ends.items()}))

    def commit_soon(self, assigned: frozenset[TopicPartition]) -> None:
        """Sends the answers, and once a second commits the samples whose answers are acknowledged."""
        self._writer.push()
        while self._batches and self._batches[0][0].known:
            self._acknowledged |= self._batches.popleft()[1]
        if self._acknowledged and time.monotonic() >= self._due:
            self._acknowledged = {tp: offset for tp, offset in self._acknowledged.items() if tp in assigned}
            self._samples.commit_soon(self._acknowledged)
            self._due = time.monotonic() + _COMMIT_SECONDS

    def settle(self) -> None:
        """Waits until all answers are acknowledged and their samples committed."""
        if self._batches or self._acknowledged:
            self._writer.flush()
            for _, offsets in self._batches:
                self._acknowledged |= offsets
            self._samples.commit(self._acknowledged)
            self._batches.clear()
            self._acknowledged = {}
