"""What a learner reports: backlog, losses in training, outcomes of commits, metrics and a log line per window."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from stream_cgzsl.errors import BusUnavailable, Fenced
from stream_cgzsl.learners.interface import Losses, Progress
from stream_cgzsl.runtime.environment import peak_memory
from stream_cgzsl.runtime.metrics import LearnerMetrics
from stream_cgzsl.schemas import LedgerRecord

log = logging.getLogger("learner")

PHASES = ("read", "train", "commit")

_LARGE_COMMIT = 10_000_000
_COMMIT_RATE = 10e6
"""Bytes a second that are expected before a large commit was measured. One of 60 MB has taken 0.8 s."""


class TrainingMonitor(Losses):
    """Exports the losses during training, and cancels it when the worker must stop."""

    def __init__(self, interrupted: Callable[[], bool], metrics: LearnerMetrics) -> None:
        super().__init__()
        self._interrupted = interrupted
        self._metrics = metrics

    def progress(self, progress: Progress) -> None:
        super().progress(progress)
        for term, value in progress.losses.items():
            self._metrics.loss.labels(term).set(value)

    def cancelled(self) -> bool:
        return self._interrupted()


class Backlog:
    """How many records wait for the next window, and since when."""

    def __init__(self, metrics: LearnerMetrics, wall: Callable[[], float] = time.time) -> None:
        self._metrics = metrics
        self._wall = wall
        self._window = 0
        self._since = 0.0
        self.clear()

    def update(self, window: int, counts: Mapping[str, int]) -> None:
        """`counts` records per role wait for this window."""
        if window != self._window or not any(counts.values()):
            self._window, self._since = window, 0.0
        if any(counts.values()):
            self._since = self._since or self._wall()
        self._metrics.open_since.set(self._since)
        for role, count in counts.items():
            self._metrics.lag.labels(role).set(count)

    def clear(self) -> None:
        """Nothing waits for this learner; perhaps for another one."""
        self.update(0, dict.fromkeys(("attributes", "features", "control"), 0))


class CommitTimes:
    """Tells beforehand when a commit may take longer than the bus allows, from how fast the large ones before were."""

    def __init__(self) -> None:
        self._rate = _COMMIT_RATE

    def warn(self, size: int, limit: float | None) -> bool:
        """Whether a commit of `size` bytes could take longer than `limit` seconds; then it is logged, too."""
        expected = size / self._rate
        if limit is None or expected < limit / 2:
            return False
        log.warning(
            "the next commit has %.0f MB and may take %.0f s; the bus ends it after %.0f s, and the learner would try "
            "again and again: raise ?transaction_timeout_ms= in the URL of the bus (and transaction.max.timeout.ms of "
            "the brokers)",
            size / 1e6,
            expected,
            limit,
        )
        return True

    def took(self, size: int, seconds: float) -> None:
        if size >= _LARGE_COMMIT:
            self._rate = size / max(seconds, 1e-3)


@contextmanager
def count_outcome(metrics: LearnerMetrics) -> Iterator[None]:
    """Counts the transaction inside by how it ended."""
    outcome = "aborted"
    try:
        yield
        outcome = "committed"
    except Fenced:
        outcome = "fenced"
        raise
    except BusUnavailable:
        outcome = "unknown"
        raise
    finally:
        metrics.transactions.labels(outcome).inc()


def report_window(
    metrics: LearnerMetrics,
    record: LedgerRecord,
    dead: int,
    seconds: Mapping[str, float],
    state_bytes: int,
    device: str,
) -> None:
    """A window is committed; `seconds` has the duration of each of `PHASES`."""
    for phase, duration in seconds.items():
        metrics.phase_seconds.labels(phase).observe(duration)
    metrics.committed(record)
    if state_bytes:
        metrics.state_bytes.set(state_bytes)
    metrics.device_bytes.set(peak_memory(device))
    accepted = {role: sum(span.accepted for span in spans.values()) for role, spans in record.ranges.items()}
    if record.kind == "train" and accepted["features"]:  # other windows repeat the counts of the last training
        _count_replay(metrics, record.serving.calibration if record.serving else {})
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
        *(seconds[phase] for phase in PHASES),
        f"; {record.error}" if record.error else "",
    )


def _count_replay(metrics: LearnerMetrics, calibration: Mapping[str, object]) -> None:
    """Learners without replay have no such counts."""
    for fate in ("kept", "rejected"):
        count = calibration.get(f"replay_{fate}", 0)
        metrics.replay.labels(fate).inc(count if isinstance(count, int) else 0)
