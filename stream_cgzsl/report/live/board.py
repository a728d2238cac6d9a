"""What the live page shows of a stream: the newest events of each kind, a bounded number of them."""

from __future__ import annotations

from collections import deque
from typing import Any

from stream_cgzsl.report.live.charts import evaluated, prequential
from stream_cgzsl.report.live.classes import Classes
from stream_cgzsl.schemas import DeadLetter, Evaluation, Event, LedgerRecord, Prediction

WINDOWS = 100
PREDICTIONS = 25
DEAD_LETTERS = 25


class Board:
    """Events in, parts of the page out. For one thread."""

    def __init__(self) -> None:
        self.newest: LedgerRecord | None = None
        self.classes = Classes()
        self._windows: deque[dict[str, Any]] = deque(maxlen=WINDOWS)
        self._evaluations: deque[Evaluation] = deque(maxlen=WINDOWS)
        self._predictions: deque[dict[str, Any]] = deque(maxlen=PREDICTIONS)
        self._letters: deque[dict[str, Any]] = deque(maxlen=DEAD_LETTERS)

    def add(self, event: Event, written_ms: int) -> None:
        """One event and the time of its record. Types that are not shown are ignored."""
        if isinstance(event, LedgerRecord):
            self.newest = event
            self._windows.append(_window(event, written_ms))
        elif isinstance(event, Evaluation):
            self._add_evaluation(event)
        elif isinstance(event, Prediction):
            self._predictions.append(_prediction(event, written_ms))
        elif isinstance(event, DeadLetter):
            self._letters.append(_letter(event, written_ms))

    def _add_evaluation(self, event: Evaluation) -> None:
        """Keeps one evaluation per generation, the newest, ordered by generation."""
        others = [one for one in self._evaluations if one.generation != event.generation]
        self._evaluations = deque(sorted([*others, event], key=lambda one: one.generation), maxlen=WINDOWS)

    @property
    def evaluated(self) -> int | None:
        """The newest generation with an evaluation."""
        return self._evaluations[-1].generation if self._evaluations else None

    def parts(self) -> dict[str, Any]:
        """The parts of the page by name, as JSON values."""
        last = self._evaluations[-1] if self._evaluations else None
        return {
            "windows": list(self._windows)[::-1],
            "classes": self.classes.part(),
            "accuracy": {
                "generation": None if last is None else last.generation,
                "samples": None if last is None else last.samples,
                "seen": None if last is None else last.seen,
                "unseen": None if last is None else last.unseen,
                "harmonic": None if last is None else last.harmonic,
                "forgetting": None if last is None else last.forgetting,
                "evaluated": evaluated(self._evaluations),
                "prequential": prequential(self._windows),
            },
            "predictions": list(self._predictions)[::-1],
            "letters": list(self._letters)[::-1],
        }


def _window(record: LedgerRecord, written_ms: int) -> dict[str, Any]:
    spans = [span for role in record.ranges.values() for span in role.values()]
    before = record.prequential
    return {
        "number": record.number,
        "kind": record.kind,
        "reason": record.reason,
        "ms": written_ms,
        "described": sum(span.accepted for span in record.ranges.get("attributes", {}).values()),
        "features": sum(span.accepted for span in record.ranges.get("features", {}).values()),
        "duplicate": sum(span.duplicate for span in spans),
        "dead": sum(sum(span.dead.values()) for span in spans),
        "lost": sum(span.lost for span in spans),
        "seen": record.seen,
        "unseen": record.unseen,
        "digest": record.generation,
        "prequential_seen": None if before is None else before.seen,
        "prequential_unseen": None if before is None else before.unseen,
        "error": record.error,
        "to": record.to,
    }


def _prediction(event: Prediction, written_ms: int) -> dict[str, Any]:
    return {
        "ms": written_ms,
        "request_id": event.request_id,
        "status": event.status,
        "class_id": event.class_id,
        "score": event.score,
        "margin": event.margin,
        "seen": event.top[0].seen if event.top else None,
        "generation": event.generation,
        "error": event.error,
    }


def _letter(event: DeadLetter, written_ms: int) -> dict[str, Any]:
    return {"ms": written_ms, "reason": event.reason, "detail": event.detail}
