"""Every metric in one list: dashboards and alerts are checked against it.

One `Metrics` per process, with its own registry. Calls are per batch or per window, never per record. Counters are
exported as zero from the start, so that a rate is right from the first event.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
)

from stream_cgzsl.runtime.histogram import BatchHistogram
from stream_cgzsl.schemas import EXAMPLE_BUCKETS, Evaluation, LedgerRecord, harmonic_mean
from stream_cgzsl.schemas.errors import REASONS, STREAM_REASONS
from stream_cgzsl.version import __version__

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
_FAST = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_SCORES = tuple(round(-1 + 0.1 * step, 1) for step in range(31))  # projections have length 1 on average
_MARGINS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)

KINDS = ("seen", "unseen", "harmonic")
"""Accuracies: of seen classes, of unseen classes, and their harmonic mean."""

WINDOWS = (
    *(
        (kind, policy)
        for kind in ("train", "failed")
        for policy in ("marker", "count", "event-time", "max-age", "dead-letters")
    ),
    *((kind, policy) for kind in ("describe", "failed") for policy in ("describe", "rebuild", "snapshot")),
    ("describe", "dead-letters"),
    *(("rollback", policy) for policy in ("rollback", "accept-loss")),
    ("failed", "rollback"),
)
"""Every kind of window that is committed, with the policies that can close it."""

disable_created_metrics()  # type: ignore[no-untyped-call]  # each would be one more time series


class Metrics:
    """What every worker exports."""

    def __init__(self, worker: str) -> None:
        self.registry = r = CollectorRegistry()
        ProcessCollector(registry=r)
        self._worker = worker
        self._say = Info("cgzsl_build", "version and kind of this worker, and the client of its bus", registry=r).info
        self.connected("")
        self.ready = Gauge("cgzsl_ready", "1 while /readyz says that this worker is of use", registry=r)
        self.generation = Gauge("cgzsl_generation_number", "the newest generation this worker has", registry=r)
        self.classes = Gauge("cgzsl_classes", "live classes in it", ["kind"], registry=r)
        self.last_success = Gauge(
            "cgzsl_last_success_timestamp_seconds",
            "when this worker last did its work: committed a window, answered a batch, published an evaluation",
            registry=r,
        )
        self.bus_errors = Counter(
            "cgzsl_bus_errors_total", "times the bus did not answer and was asked again", registry=r
        )
        self.lag = Gauge(
            "cgzsl_lag_records", "records on the bus that this worker has not taken yet", ["role"], registry=r
        )
        self.rebalances = Counter(
            "cgzsl_rebalances_total", "times this worker's share of the partitions changed", registry=r
        )
        for kind in ("seen", "unseen"):
            self.classes.labels(kind)

    def connected(self, client: str) -> None:
        """`client` is that of the bus."""
        self._say({"version": __version__, "worker": self._worker, "client": client})

    def serving(self, seen: int, unseen: int, generation: int) -> None:
        """Another generation is the newest."""
        self.generation.set(generation)
        self.classes.labels("seen").set(seen)
        self.classes.labels("unseen").set(unseen)


class LearnerMetrics(Metrics):
    def __init__(self) -> None:
        super().__init__("learner")
        r = self.registry
        self.active = Gauge("cgzsl_learner_active", "1 while this learner leads, 0 while it stands by", registry=r)
        self.records = Counter(
            "cgzsl_records_total", "input records, by what became of them", ["role", "fate"], registry=r
        )
        self.dead = Counter("cgzsl_dead_letters_total", "input records that could not be used", ["reason"], registry=r)
        self.windows = Counter("cgzsl_windows_total", "windows committed", ["kind", "policy"], registry=r)
        self.phase_seconds = Histogram(
            "cgzsl_window_phase_seconds",
            "time of each numbered step of a window",
            ["phase"],
            buckets=_SECONDS,
            registry=r,
        )
        self.generations = Counter(
            "cgzsl_generations_total", "generations made, anew (refresh) or from the one before", ["made"], registry=r
        )
        self.refresh_seconds = Histogram(
            "cgzsl_refresh_seconds", "training of a window that makes its generation anew", buckets=_SECONDS, registry=r
        )
        self.published_classes = Counter(
            "cgzsl_published_classes_total", "projections written, each of one class", registry=r
        )
        self.published_bytes = Counter("cgzsl_published_bytes_total", "bytes of these projections", registry=r)
        self.open_since = Gauge(
            "cgzsl_open_window_timestamp_seconds",
            "when the first record that waits for the next window was noticed; 0 when none waits",
            registry=r,
        )
        self.state_bytes = Gauge("cgzsl_state_bytes", "size of the last snapshot", registry=r)
        self.loss = Gauge("cgzsl_loss", "the latest value of each loss term", ["term"], registry=r)
        self.replay = Counter(
            "cgzsl_replayed_features_total",
            "generated features, kept or rejected by the classifier",
            ["fate"],
            registry=r,
        )
        self.prequential = Gauge(
            "cgzsl_prequential_accuracy_ratio",
            "share of the last window that the generation before it classified correctly, per-class mean",
            ["kind"],
            registry=r,
        )
        self.drift = Gauge(
            "cgzsl_projection_drift_radians",
            "how far the last window turned the projections",
            ["statistic"],
            registry=r,
        )
        self.transactions = Counter("cgzsl_transactions_total", "commits, by how they ended", ["outcome"], registry=r)
        self.device_bytes = Gauge(
            "cgzsl_device_memory_bytes", "peak memory of the accelerator since the start; 0 without one", registry=r
        )
        for role in ("attributes", "features", "control"):
            for fate in ("accepted", "duplicate", "late", "dead", "lost"):
                self.records.labels(role, fate)
            self.lag.labels(role)
        for reason in (*REASONS, *STREAM_REASONS):
            self.dead.labels(reason)
        for kind, policy in WINDOWS:
            self.windows.labels(kind, policy)
        for phase in ("read", "train", "commit"):
            self.phase_seconds.labels(phase)
        for made in ("refresh", "update"):
            self.generations.labels(made)
        for fate in ("kept", "rejected"):
            self.replay.labels(fate)
        for outcome in ("committed", "aborted", "fenced", "unknown"):
            self.transactions.labels(outcome)

    def committed(self, record: LedgerRecord) -> None:
        """Counts one window, from its ledger record."""
        self.windows.labels(record.kind, record.closed_by).inc()
        self.serving(record.seen, record.unseen, record.number)
        self.last_success.set_to_current_time()
        if record.prequential is not None:
            seen, unseen = record.prequential.seen, record.prequential.unseen
            for kind, share in zip(KINDS, (seen, unseen, harmonic_mean(seen, unseen)), strict=True):
                self.prequential.labels(kind).set(_figure(share))
        for role, spans in record.ranges.items():
            for span in spans.values():
                self.records.labels(role, "accepted").inc(span.accepted)
                self.records.labels(role, "duplicate").inc(span.duplicate)
                self.records.labels(role, "late").inc(span.late)
                self.records.labels(role, "dead").inc(sum(span.dead.values()))
                self.records.labels(role, "lost").inc(span.lost)
                for reason, count in span.dead.items():
                    self.dead.labels(reason).inc(count)

    def made(self, refreshed: bool, seconds: float, classes: int, features: int) -> None:
        """A generation is published, with the projections of so many classes; training it took `seconds`."""
        self.generations.labels("refresh" if refreshed else "update").inc()
        if refreshed:
            self.refresh_seconds.observe(seconds)
        self.published_classes.inc(classes)
        self.published_bytes.inc(4 * classes * features)

    def turned(self, movement: Mapping[str, float]) -> None:
        """By how many radians the last window turned the projection of each class that was there before."""
        angles = list(movement.values())
        self.drift.labels("mean").set(sum(angles) / len(angles) if angles else math.nan)
        self.drift.labels("max").set(max(angles, default=math.nan))


class ScorerMetrics(Metrics):
    def __init__(self) -> None:
        super().__init__("scorer")
        r = self.registry
        self.predictions = Counter("cgzsl_predictions_total", "answers, by status", ["status"], registry=r)
        self.batch_seconds = Histogram(
            "cgzsl_batch_seconds", "from a batch read to its answers written", buckets=_FAST, registry=r
        )
        self.answer_seconds = Histogram(
            "cgzsl_answer_seconds",
            "from the time of a batch's oldest sample to its answer written",
            buckets=_FAST,
            registry=r,
        )
        self.load_seconds = Histogram("cgzsl_load_seconds", "loading a generation", buckets=_SECONDS, registry=r)
        self.ledger = Gauge(
            "cgzsl_ledger_generation_number", "the newest generation of the ledger, loaded here or not", registry=r
        )
        self.scores = BatchHistogram("cgzsl_score", "best score of each answer", _SCORES, r)
        self.margins = BatchHistogram("cgzsl_margin", "by how much the best class leads the second", _MARGINS, r)
        self.drift = Gauge(
            "cgzsl_swap_drift_radians", "how far the last swap turned the projections", ["statistic"], registry=r
        )
        for status in ("ok", "unknown", "no-model", "invalid"):
            self.predictions.labels(status)
        self.lag.labels("samples")


class EvaluatorMetrics(Metrics):
    def __init__(self) -> None:
        super().__init__("evaluator")
        r = self.registry
        self.accuracy = Gauge(
            "cgzsl_holdout_accuracy_ratio", "per-class mean accuracy of the newest generation", ["kind"], registry=r
        )
        self.by_examples = Gauge(
            "cgzsl_accuracy_by_examples_ratio",
            "per-class mean accuracy of the newest generation, by how many examples its classes have had",
            ["examples"],
            registry=r,
        )
        self.forgetting = Gauge(
            "cgzsl_forgetting_ratio", "how much worse learned classes are than they once were", registry=r
        )
        self.area = Gauge("cgzsl_seen_unseen_area_ratio", "area under the seen-unseen curve", registry=r)
        self.holdout = Gauge(
            "cgzsl_holdout_records", "labelled examples the newest generation was tested with", registry=r
        )
        self.evaluations = Counter(
            "cgzsl_evaluations_total", "generations evaluated, or gone before", ["outcome"], registry=r
        )
        self.evaluation_seconds = Histogram(
            "cgzsl_evaluation_seconds", "evaluating one generation", buckets=_SECONDS, registry=r
        )
        self.class_accuracy = Gauge(
            "cgzsl_class_accuracy_ratio",
            "accuracy of single classes (only with --class-series)",
            ["class_id"],
            registry=r,
        )
        self.dead = Counter(
            "cgzsl_dead_letters_total", "holdout records that could not be used", ["reason"], registry=r
        )
        for outcome in ("published", "gone"):
            self.evaluations.labels(outcome)
        for reason in (*REASONS, *STREAM_REASONS):
            self.dead.labels(reason)
        by_examples = map(self.by_examples.labels, EXAMPLE_BUCKETS)
        for gauge in (self.forgetting, self.area, *map(self.accuracy.labels, KINDS), *by_examples):
            gauge.set(math.nan)
        self.lag.labels("holdout")
        self._series: set[str] = set()

    def evaluated(self, evaluation: Evaluation, class_series: int) -> None:
        """Exports the newest evaluation, and the accuracies of the `class_series` worst classes; NaN where missing."""
        for kind in KINDS:
            self.accuracy.labels(kind).set(_figure(getattr(evaluation, kind)))
        for bucket in EXAMPLE_BUCKETS:
            self.by_examples.labels(bucket).set(_figure(evaluation.by_examples.get(bucket)))
        self.forgetting.set(_figure(evaluation.forgetting))
        self.area.set(_figure(evaluation.area))
        self.holdout.set(evaluation.samples)
        worst = sorted(evaluation.per_class.items(), key=lambda item: (item[1], item[0]))[:class_series]
        for class_id, share in worst:
            self.class_accuracy.labels(class_id).set(share)
        for class_id in self._series - {class_id for class_id, _ in worst}:
            self.class_accuracy.remove(class_id)
        self._series = {class_id for class_id, _ in worst}


def _figure(share: float | None) -> float:
    return math.nan if share is None else share
