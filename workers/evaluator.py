"""The evaluator: follows the ledger and tests every generation with the holdout. It keeps nothing.

Every generation that is still there is evaluated, oldest first; those that compaction took before their turn are
counted as gone. A generation's evaluation and the dead letters of the holdout up to its cut become visible together,
by one evaluator at a time: each once.
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
from stream_cgzsl.evaluation.examiner import Examiner
from stream_cgzsl.evaluation.feed import Unusable
from stream_cgzsl.metrics import EvaluatorMetrics
from stream_cgzsl.schemas import Evaluation, LedgerRecord
from stream_cgzsl.settings import Settings
from stream_cgzsl.windows import ledger
from stream_cgzsl.workers.standby import OneAtWork

log = logging.getLogger("evaluator")

_POLL_SECONDS = 0.5


class EvaluatorWorker(OneAtWork[EvaluatorMetrics]):
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

    def _work(self, publisher: Publisher) -> None:
        """From what is published now to the last generation before `stop`."""
        self._why_not_ready = "not caught up with the ledger yet"
        last = published.newest(self._bus, self._topics)
        examiner = Examiner(self._bus, self._topics, last, int(self._settings.holdout_gb * 1e9), self._alive)
        if last is not None:
            self._metrics.evaluated(last, self._settings.class_series)
        log.info("%s; following the ledger", f"generation {last.generation} is evaluated" if last else "a new start")
        windows = TopicPartition(self._topics["windows"], 0)
        with self._bus.reader({windows: self._bus.begin_offsets(windows.topic)[0]}) as reader:
            while not self._stop.is_set():
                self._alive()
                records = [ledger.parse(record) for record in reader.poll(_POLL_SECONDS)]
                examiner.look_ahead(records)
                for record in records:
                    self._take(publisher, examiner, record)
                if not records:
                    self._why_not_ready = None
                if examiner.feed is not None:
                    self._metrics.lag.labels("holdout").set(examiner.feed.waiting())

    def _take(self, publisher: Publisher, examiner: Examiner, record: LedgerRecord) -> None:
        """One record of the ledger: tests its generation and publishes what came of it, unless that was done before."""
        started = time.perf_counter()
        try:
            evaluation = examiner.examine(record)
        except ledger.Incomplete as reason:
            self._metrics.evaluations.labels("gone").inc()
            log.info("generation %d is gone before it was evaluated: %s", record.number, reason)
            return
        self._metrics.serving(record.seen, record.unseen, record.number)
        if evaluation is None:
            return
        assert examiner.feed is not None
        dead = examiner.feed.dead()
        self._alive()
        published.publish(publisher, self._topics, evaluation, [unusable.letter for unusable in dead], record.holdout)
        examiner.published(evaluation)
        self._tell(record, evaluation, dead, time.perf_counter() - started)

    def _tell(self, record: LedgerRecord, evaluation: Evaluation, dead: Sequence[Unusable], seconds: float) -> None:
        """An evaluation is published: its metrics, and one line of log."""
        self._metrics.evaluated(evaluation, self._settings.class_series)
        self._metrics.evaluations.labels("published").inc()
        self._metrics.evaluation_seconds.observe(seconds)
        self._metrics.last_success.set_to_current_time()
        for unusable in dead:
            self._metrics.dead.labels(unusable.reason).inc()
        figures = ("seen", "unseen", "harmonic", "forgetting", "area")
        told = [f"{name} {100 * share:.1f} %" for name in figures if (share := getattr(evaluation, name)) is not None]
        log.info(
            "generation %d, %s: %d samples; %s; %d dead; %.2f s",
            record.number,
            record.kind,
            evaluation.samples,
            ", ".join(told) or "no accuracies",
            len(dead),
            seconds,
        )

    def _alive(self) -> None:
        if self._interrupted():
            raise Cancelled("stopped before a generation was evaluated; it will be evaluated at the next start")
