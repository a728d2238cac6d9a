"""What a learner tells: what waits for the next window, losses during training, how each commit ended, and for each
window one line of log and its metrics.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise

from stream_cgzsl.environment import peak_memory
from stream_cgzsl.errors import BusUnavailable, Fenced
from stream_cgzsl.learners.interface import Losses, Progress
from stream_cgzsl.metrics import LearnerMetrics
from stream_cgzsl.schemas import LedgerRecord

log = logging.getLogger("learner")


class Watch(Losses):
    """Shows the losses while training, and ends it when the worker must stop."""

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


class Waiting:
    """What waits for the next window, and since when."""

    def __init__(self, metrics: LearnerMetrics, wall: Callable[[], float] = time.time) -> None:
        self._metrics = metrics
        self._wall = wall
        self._window = 0
        self._since = 0.0
        self.none()

    def noticed(self, window: int, counts: Mapping[str, int]) -> None:
        """So many records of each role wait for this window."""
        if window != self._window or not any(counts.values()):
            self._window, self._since = window, 0.0
        if any(counts.values()):
            self._since = self._since or self._wall()
        self._metrics.open_since.set(self._since)
        for role, count in counts.items():
            self._metrics.lag.labels(role).set(count)

    def none(self) -> None:
        """Nothing waits for this learner; for another one, maybe."""
        self.noticed(0, dict.fromkeys(("attributes", "features", "control"), 0))


@contextmanager
def counted(metrics: LearnerMetrics) -> Iterator[None]:
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


def tell(
    metrics: LearnerMetrics, record: LedgerRecord, dead: int, clock: Sequence[float], state_bytes: int, device: str
) -> None:
    """A window is committed. `clock` was read before and after each of the steps read, train, commit."""
    seconds = [after - before for before, after in pairwise(clock)]
    for phase, duration in zip(("read", "train", "commit"), seconds, strict=True):
        metrics.phase_seconds.labels(phase).observe(duration)
    metrics.committed(record)
    if state_bytes:
        metrics.state_bytes.set(state_bytes)
    metrics.device_bytes.set(peak_memory(device))
    accepted = {role: sum(span.accepted for span in spans.values()) for role, spans in record.ranges.items()}
    if record.kind == "train" and accepted["features"]:  # other windows repeat what the last training said
        _tell_replay(metrics, record.serving.calibration if record.serving else {})
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


def _tell_replay(metrics: LearnerMetrics, calibration: Mapping[str, object]) -> None:
    """Learners without replay say nothing of it."""
    for fate in ("kept", "rejected"):
        count = calibration.get(f"replay_{fate}", 0)
        metrics.replay.labels(fate).inc(count if isinstance(count, int) else 0)
