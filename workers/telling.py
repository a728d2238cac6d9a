"""What a learner tells while it works: losses during training, and for each window one line of log and its metrics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import pairwise

from stream_cgzsl.learners.interface import Monitor, Progress
from stream_cgzsl.metrics import LearnerMetrics
from stream_cgzsl.schemas import LedgerRecord

log = logging.getLogger("learner")


class Watch(Monitor):
    """Shows the losses while training, and ends it when the worker must stop."""

    def __init__(self, interrupted: Callable[[], bool], metrics: LearnerMetrics) -> None:
        self._interrupted = interrupted
        self._metrics = metrics

    def progress(self, progress: Progress) -> None:
        for term, value in progress.losses.items():
            self._metrics.loss.labels(term).set(value)

    def cancelled(self) -> bool:
        return self._interrupted()


def tell(metrics: LearnerMetrics, record: LedgerRecord, dead: int, clock: Sequence[float], state_bytes: int) -> None:
    """A window is committed. `clock` was read before and after each of the steps read, train, commit."""
    seconds = [after - before for before, after in pairwise(clock)]
    for phase, duration in zip(("read", "train", "commit"), seconds, strict=True):
        metrics.phase_seconds.labels(phase).observe(duration)
    metrics.committed(record)
    if state_bytes:
        metrics.state_bytes.set(state_bytes)
    accepted = {role: sum(span.accepted for span in spans.values()) for role, spans in record.ranges.items()}
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
