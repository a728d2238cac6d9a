"""The evaluator: follows the ledger and tests every generation with the holdout. It keeps no state.

Every generation that still exists is evaluated, oldest first; those that compaction removed before are counted as
gone. A generation's evaluation and the dead letters of the holdout up to its cut are committed together, exactly once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from stream_cgzsl.bus import Bus, Publisher, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import Cancelled
from stream_cgzsl.evaluation import published
from stream_cgzsl.evaluation.holdout_reader import Unusable
from stream_cgzsl.evaluation.ledger_evaluator import LedgerEvaluator
from stream_cgzsl.runtime.metrics import EvaluatorMetrics
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import Evaluation, LedgerRecord
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.recorded import Ledger
from stream_cgzsl.workers.leader import LeaderWorker

log = logging.getLogger("evaluator")

_POLL_SECONDS = 0.5


class EvaluatorWorker(LeaderWorker[EvaluatorMetrics]):
    """One stream's evaluator."""

    kind = "evaluator"
    locked = "evaluations"

    def __init__(
        self,
        bus: Bus,
        topics: Topics,
        settings: Settings,
        metrics: EvaluatorMetrics,
        stop: threading.Event,
        patient: bool = True,
    ) -> None:
        super().__init__(bus, topics, metrics, stop, patient)
        self._settings = settings

    def _lead(self, publisher: Publisher) -> None:
        """From what is published now to the last generation before `stop`."""
        self._why_not_ready = "not caught up with the ledger yet"
        last = published.newest(self._bus, self._topics)
        evaluator = LedgerEvaluator(self._bus, self._topics, last, int(self._settings.holdout_gb * 1e9), self._alive)
        if last is not None:
            self._metrics.evaluated(last, self._settings.class_series)
        log.info("%s; following the ledger", f"generation {last.generation} is evaluated" if last else "a new start")
        windows = TopicPartition(self._topics["windows"], 0)
        with self._bus.reader({windows: self._start(last)}) as reader:
            while not self._stop.is_set():
                self._alive()
                records = [ledger.parse(record) for record in reader.poll(_POLL_SECONDS)]
                evaluator.look_ahead(records)
                for record in records:
                    self._take(publisher, evaluator, record)
                if not records:
                    self._why_not_ready = None
                if evaluator.reader is not None:
                    self._metrics.lag.labels("holdout").set(evaluator.reader.lag())

    def _start(self, last: Evaluation | None) -> int:
        """The offset of the last evaluated generation's record; the ledger's first or last one where that is not."""
        recorded = None if last is None else Ledger.open(self._bus, self._topics)
        if last is None or recorded is None:
            return self._bus.begin_offsets(self._topics["windows"])[0]
        return recorded.offset(min(last.generation, recorded.last.number))

    def _take(self, publisher: Publisher, evaluator: LedgerEvaluator, record: LedgerRecord) -> None:
        """Evaluates the generation of one ledger record and publishes the result, unless that was done before."""
        started = time.perf_counter()
        try:
            evaluation = evaluator.evaluate(record)
        except ledger.Incomplete as reason:
            self._metrics.evaluations.labels("gone").inc()
            log.info("generation %d was gone before it could be evaluated: %s", record.number, reason)
            return
        self._metrics.serving(record.seen, record.unseen, record.number)
        if evaluation is None:
            return
        assert evaluator.reader is not None
        dead = evaluator.reader.unusable()
        self._alive()
        published.publish(publisher, self._topics, evaluation, [unusable.letter for unusable in dead], record.holdout)
        evaluator.mark_published(evaluation)
        self._report(record, evaluation, dead, time.perf_counter() - started)

    def _report(self, record: LedgerRecord, evaluation: Evaluation, dead: Sequence[Unusable], seconds: float) -> None:
        """Metrics and a log line for a published evaluation."""
        self._metrics.evaluated(evaluation, self._settings.class_series)
        self._metrics.evaluations.labels("published").inc()
        self._metrics.evaluation_seconds.observe(seconds)
        self._metrics.last_success.set_to_current_time()
        for unusable in dead:
            self._metrics.dead.labels(unusable.reason).inc()
        figures = ("seen", "unseen", "harmonic", "forgetting", "area")
        parts = [f"{name} {100 * share:.1f} %" for name in figures if (share := getattr(evaluation, name)) is not None]
        log.info(
            "generation %d, %s: %d samples; %s; %d dead; %.2f s",
            record.number,
            record.kind,
            evaluation.samples,
            ", ".join(parts) or "no accuracies",
            len(dead),
            seconds,
        )

    def _alive(self) -> None:
        if self._interrupted():
            raise Cancelled("stopped before a generation was evaluated; it will be evaluated at the next start")
