"""The names of every metric, typed, in one list: dashboards and alerts are checked against it.

One `Metrics` a process, with a registry of its own. Calls are per batch or per window, never per record.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from stream_cgzsl import __version__
from stream_cgzsl.schemas import LedgerRecord

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
_FAST = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class Metrics:
    def __init__(self, worker: str) -> None:
        self.registry = r = CollectorRegistry()
        Info("cgzsl_build", "version and kind of this worker", registry=r).info(
            {"version": __version__, "worker": worker}
        )
        self.generation = Gauge("cgzsl_generation_number", "the newest generation this worker has", registry=r)
        self.classes = Gauge("cgzsl_classes", "live classes in it", ["kind"], registry=r)
        self.bus_errors = Counter(
            "cgzsl_bus_errors_total", "times the bus did not answer and was asked again", registry=r
        )
        for kind in ("seen", "unseen"):
            self.classes.labels(kind)


class LearnerMetrics(Metrics):
    def __init__(self) -> None:
        super().__init__("learner")
        r = self.registry
        self.records = Counter(
            "cgzsl_records_total", "input records, by what became of them", ["role", "fate"], registry=r
        )
        self.dead = Counter("cgzsl_dead_letters_total", "input records that could not be used", ["reason"], registry=r)
        self.windows = Counter("cgzsl_windows_total", "windows committed", ["kind"], registry=r)
        self.phase_seconds = Histogram(
            "cgzsl_window_phase_seconds",
            "time of each numbered step of a window",
            ["phase"],
            buckets=_SECONDS,
            registry=r,
        )
        self.backlog = Gauge("cgzsl_backlog_records", "records waiting for the next window", ["role"], registry=r)
        self.last_commit = Gauge(
            "cgzsl_last_commit_timestamp_seconds", "when the last window was committed", registry=r
        )
        self.state_bytes = Gauge("cgzsl_state_bytes", "size of the last snapshot", registry=r)
        self.loss = Gauge("cgzsl_loss", "the latest value of each loss term", ["term"], registry=r)
        for role in ("attributes", "features", "control"):
            for fate in ("accepted", "duplicate", "late", "dead"):
                self.records.labels(role, fate)
            self.backlog.labels(role)
        for kind in ("train", "describe", "failed", "rollback"):
            self.windows.labels(kind)
        for phase in ("read", "train", "commit"):
            self.phase_seconds.labels(phase)

    def committed(self, record: LedgerRecord) -> None:
        """Counts one window, from its ledger record."""
        self.windows.labels(record.kind).inc()
        self.generation.set(record.number)
        self.classes.labels("seen").set(record.seen)
        self.classes.labels("unseen").set(record.unseen)
        self.last_commit.set_to_current_time()
        for role, spans in record.ranges.items():
            for span in spans.values():
                self.records.labels(role, "accepted").inc(span.accepted)
                self.records.labels(role, "duplicate").inc(span.duplicate)
                self.records.labels(role, "late").inc(span.late)
                self.records.labels(role, "dead").inc(sum(span.dead.values()))
                for reason, count in span.dead.items():
                    self.dead.labels(reason).inc(count)


class ScorerMetrics(Metrics):
    def __init__(self) -> None:
        super().__init__("scorer")
        r = self.registry
        self.predictions = Counter("cgzsl_predictions_total", "answers, by status", ["status"], registry=r)
        self.batch_seconds = Histogram(
            "cgzsl_batch_seconds", "from a batch read to its answers acknowledged", buckets=_FAST, registry=r
        )
        self.load_seconds = Histogram("cgzsl_load_seconds", "loading a generation", buckets=_SECONDS, registry=r)
        for status in ("ok", "no-model", "invalid"):
            self.predictions.labels(status)
