"""Drift from generation to generation, of answers and of projections, as `stream-cgzsl drift` shows it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stream_cgzsl.bus import Bus, Record
from stream_cgzsl.bus.scan import scan
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.evaluation import published
from stream_cgzsl.evaluation.quantiles import Quantiles
from stream_cgzsl.schemas import Evaluation, Prediction
from stream_cgzsl.windows.ledger import valid_events

log = logging.getLogger(__name__)

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Of scores and margins."""

_MOST_DRIFTED = 3  # classes that are listed

_ROUNDING = 1e-6  # radians: a projection that was only scaled drifts less than this


@dataclass
class GenerationDrift:
    """One generation: its answers, and the drift of its projections since the previous one."""

    generation: int
    statuses: Counter[str] = field(default_factory=Counter)
    scores: Quantiles = field(default_factory=Quantiles)
    margins: Quantiles = field(default_factory=Quantiles)
    projection_mean: float | None = None
    projection_max: float | None = None
    most_drifted: tuple[tuple[str, float], ...] = ()

    @property
    def answers(self) -> int:
        """How many answers have a score: those with a class, and `unknown`."""
        return self.statuses["ok"] + self.statuses["unknown"]

    @property
    def unknown(self) -> float | None:
        """The fraction of `unknown` among them."""
        return self.statuses["unknown"] / self.answers if self.answers else None

    def add_projection_drift(self, evaluation: Evaluation) -> None:
        angles = list(evaluation.movement.values())
        if angles:
            self.projection_mean, self.projection_max = float(np.mean(angles)), max(angles)
            drifted = [(class_id, angle) for class_id, angle in evaluation.movement.items() if angle > _ROUNDING]
            self.most_drifted = tuple(sorted(drifted, key=lambda item: (-item[1], item[0]))[:_MOST_DRIFTED])

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "generation": self.generation,
            "answers": self.answers,
            "unknown": self.unknown,
            "score": _quantiles(self.scores),
            "margin": _quantiles(self.margins),
            "movement": {"mean": self.projection_mean, "max": self.projection_max, "most": dict(self.most_drifted)},
        }


def _quantiles(values: Quantiles) -> dict[str, float | None]:
    return dict(zip((f"{quantile:g}" for quantile in QUANTILES), values.at(QUANTILES), strict=True))


def drift(bus: Bus, topics: Topics, alive: Callable[[], None] = lambda: None) -> list[GenerationDrift]:
    """Every generation that answered or was evaluated, oldest first. Reads `predictions` and `evaluations` once.

    A sample that was answered twice after a crash counts twice. Memory is bounded by the number of generations.
    """
    found: dict[int, GenerationDrift] = {}
    topic = topics["predictions"]
    for records in scan(bus, topic, {}, bus.end_offsets(topic), alive):
        for number, predictions in _by_generation(records).items():
            one = found.setdefault(number, GenerationDrift(number))
            one.statuses.update(prediction.status for prediction in predictions)
            one.scores.add(np.array([p.score for p in predictions if p.score is not None]))
            one.margins.add(np.array([p.margin for p in predictions if p.margin is not None]))
    for evaluation in published.read_all(bus, topics):
        alive()
        number = evaluation.generation
        found.setdefault(number, GenerationDrift(number)).add_projection_drift(evaluation)
    return [found[number] for number in sorted(found)]


def _by_generation(records: Iterable[Record]) -> dict[int, list[Prediction]]:
    """The predictions by generation; those without one are left out."""
    found: dict[int, list[Prediction]] = {}
    for _, event in valid_events("predictions", records):
        if isinstance(event, Prediction) and event.generation is not None:
            found.setdefault(event.generation, []).append(event)
    return found
