"""The scorer: follows the generations and answers samples, in batches. It keeps nothing.

At least once: answers are written and acknowledged before the samples count as read. A sample that is answered twice
after a crash gets the same request id both times.
"""

from __future__ import annotations

import logging
import threading
import time

import numpy as np

from stream_cgzsl.bus import Bus, Record, TopicPartition, Writer, access
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.generation import Generation
from stream_cgzsl.metrics import ScorerMetrics
from stream_cgzsl.projections import Projections
from stream_cgzsl.schemas import (
    KEPT_BYTES,
    Candidate,
    Genesis,
    InvalidEvent,
    Message,
    Prediction,
    Sample,
    decode,
    encode,
    foreign_headers,
)
from stream_cgzsl.settings import Settings
from stream_cgzsl.windows.gather import check_feature, dead_letter

log = logging.getLogger("scorer")

_POLL_SECONDS = 0.2
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
        self._projections = Projections()
        self._assigned = False
        self._patient_until: float | None = None

    def why_not_ready(self) -> str | None:
        if self._projections.generation is None:
            return "no generation loaded yet"
        return None if self._assigned else "no partition of the samples assigned"

    def run(self) -> None:
        """Answers until `stop`. A bus that is away is waited for; every other error ends the worker."""
        access.require(self._bus, self._topics, "scorer")
        with Projections.follow(self._settings.bus, topics=self._topics, swapped=self._swapped) as self._projections:
            while not self._stop.is_set():
                try:
                    self._answer()
                except BusUnavailable as error:
                    self._metrics.bus_errors.inc()
                    log.warning("%s; trying again in %g s", error, _RETRY_SECONDS)
                    self._stop.wait(_RETRY_SECONDS)

    def _swapped(self, generation: Generation, seconds: float) -> None:
        self._metrics.load_seconds.observe(seconds)
        self._metrics.generation.set(generation.number)
        seen = int(generation.seen.sum())
        self._metrics.classes.labels("seen").set(seen)
        self._metrics.classes.labels("unseen").set(len(generation.class_ids) - seen)
        log.info("serving generation %d, %d classes", generation.number, len(generation.class_ids))

    def _answer(self) -> None:
        group = f"{self._topics.prefix}.scorer"
        with self._bus.subscribe(self._topics["samples"], group) as samples, self._bus.writer() as writer:
            while not self._stop.is_set():
                records = samples.poll(_POLL_SECONDS, self._settings.batch)
                self._assigned = bool(samples.assignment())
                self._projections.wait(0.0)  # raises what ended the following
                if not records or not self._wait_for_model():
                    continue
                started = time.perf_counter()
                self._write_answers(writer, records)
                samples.commit({TopicPartition(r.topic, r.partition): r.offset + 1 for r in records})
                self._metrics.batch_seconds.observe(time.perf_counter() - started)

    def _wait_for_model(self) -> bool:
        """Waits for the first generation, but no sample longer than `max_wait`; False when the worker must stop."""
        while not self._stop.is_set():
            if self._patient_until is None:
                self._patient_until = time.monotonic() + self._settings.max_wait
            left = self._patient_until - time.monotonic()
            if self._projections.wait(min(max(left, 0.0), 0.5)) or left <= 0:
                return True
        return False

    def _write_answers(self, writer: Writer, records: list[Record]) -> None:
        generation = self._projections.generation  # first: who has one has the genesis too
        genesis = self._projections.genesis
        predictions, dead = answer(records, generation, genesis, self._settings.top_k)
        for record, prediction in zip(records, predictions, strict=True):
            message = encode(prediction)
            copied = () if _overloaded(record) else foreign_headers(record.headers)
            writer.send(self._topics["predictions"], message._replace(headers=message.headers + copied))
        for letter in dead:
            writer.send(self._topics["dead-letters"], letter)
        writer.flush()
        for status in ("ok", "no-model", "invalid"):
            self._metrics.predictions.labels(status).inc(sum(p.status == status for p in predictions))


def answer(
    records: list[Record], generation: Generation | None, genesis: Genesis | None, k: int
) -> tuple[list[Prediction], list[Message]]:
    """One prediction a record, in their order, all by one generation; and dead letters for those that are no samples."""
    predictions: list[Prediction | None] = [None] * len(records)
    samples: list[tuple[int, Sample]] = []
    dead: list[Message] = []
    for place, record in enumerate(records):
        try:
            event = decode("samples", record.key, record.value, record.headers)
            assert isinstance(event, Sample)
            if genesis is not None:
                check_feature(event, genesis)
            if _overloaded(record):
                raise InvalidEvent(
                    "too-large",
                    "the headers are too long to be copied to the prediction",
                    f"at most {KEPT_BYTES:,} bytes",
                    "Send less in headers.",
                )
            samples.append((place, event))
        except InvalidEvent as error:
            dead.append(dead_letter(record, error))
            text = error.at(record.topic, record.partition, record.offset)
            predictions[place] = Prediction(request_id=_request_id(record), status="invalid", error=text)
    if samples and (generation is None or not generation.servable or not generation.class_ids):
        number = None if generation is None else generation.number
        for place, sample in samples:
            predictions[place] = Prediction(request_id=sample.request_id, status="no-model", generation=number)
    elif samples and generation is not None:
        ranking = generation.classify(np.stack([sample.vector for _, sample in samples]), k)
        rows = zip(samples, ranking.indices.tolist(), ranking.scores.tolist(), strict=True)
        for (place, sample), indices, scores in rows:
            predictions[place] = _prediction(sample, generation, indices, scores)
    return [p for p in predictions if p is not None], dead


def _prediction(sample: Sample, generation: Generation, indices: list[int], scores: list[float]) -> Prediction:
    top = tuple(
        Candidate(class_id=generation.class_ids[index], score=score, seen=bool(generation.seen[index]))
        for index, score in zip(indices, scores, strict=True)
    )
    return Prediction(
        request_id=sample.request_id,
        status="ok",
        class_id=top[0].class_id,
        score=top[0].score,
        top=top,
        generation=generation.number,
    )


def _request_id(record: Record) -> str:
    """The sample's own id where its key is readable, else its place."""
    try:
        text = (record.key or b"").decode()
    except UnicodeDecodeError:
        text = ""
    return text if 0 < len(text) <= 256 and text.isprintable() else f"{record.topic}/{record.partition}@{record.offset}"


def _overloaded(record: Record) -> bool:
    """Whether a prediction with the sample's headers could be too large to be written."""
    return sum(len(name) + len(value) for name, value in foreign_headers(record.headers)) > KEPT_BYTES
