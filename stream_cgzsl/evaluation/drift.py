"""Drift that people can see: how answers and projections changed from generation to generation."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stream_cgzsl.bus import Bus, Record
from stream_cgzsl.bus.through import read_through
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.evaluation import published
from stream_cgzsl.evaluation.quantiles import Quantiles
from stream_cgzsl.schemas import Evaluation, InvalidEvent, Prediction, decode

log = logging.getLogger(__name__)

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles that are told of scores and margins."""

MOVERS = 3
"""How many of the classes that moved most are told."""

_ROUNDING = 1e-6  # radians: projections that were only scaled turn by less


@dataclass
class GenerationDrift:
    """One generation: how it answered, and how far its projections are from those of the one before."""

    generation: int
    statuses: Counter[str] = field(default_factory=Counter)
    scores: Quantiles = field(default_factory=Quantiles)
    margins: Quantiles = field(default_factory=Quantiles)
    movement_mean: float | None = None
    movement_max: float | None = None
    movers: tuple[tuple[str, float], ...] = ()

    @property
    def answers(self) -> int:
        """Answers with a score: a class, or `unknown`."""
        return self.statuses["ok"] + self.statuses["unknown"]

    @property
    def unknown(self) -> float | None:
        """The share of `unknown` among them."""
        return self.statuses["unknown"] / self.answers if self.answers else None

    def moved(self, evaluation: Evaluation) -> None:
        angles = list(evaluation.movement.values())
        if angles:
            self.movement_mean, self.movement_max = float(np.mean(angles)), max(angles)
            turned = [(class_id, angle) for class_id, angle in evaluation.movement.items() if angle > _ROUNDING]
            self.movers = tuple(sorted(turned, key=lambda item: (-item[1], item[0]))[:MOVERS])

    def document(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "generation": self.generation,
            "answers": self.answers,
            "unknown": self.unknown,
            "score": _by_share(self.scores),
            "margin": _by_share(self.margins),
            "movement": {"mean": self.movement_mean, "max": self.movement_max, "most": dict(self.movers)},
        }


def _by_share(quantiles: Quantiles) -> dict[str, float | None]:
    return dict(zip((f"{share:g}" for share in SHARES), quantiles.at(SHARES), strict=True))


def drift(bus: Bus, topics: Topics, alive: Callable[[], None] = lambda: None) -> list[GenerationDrift]:
    """Every generation that answered or was evaluated, oldest first. Reads `predictions` and `evaluations` once.

    A sample that was answered twice, after a crash, counts twice. Memory is bounded by the number of generations.
    """
    found: dict[int, GenerationDrift] = {}
    topic = topics["predictions"]
    for records in read_through(bus, topic, {}, bus.end_offsets(topic), alive):
        for number, some in _by_generation(records).items():
            of = found.setdefault(number, GenerationDrift(number))
            of.statuses.update(prediction.status for prediction in some)
            of.scores.add(np.array([p.score for p in some if p.score is not None]))
            of.margins.add(np.array([p.margin for p in some if p.margin is not None]))
    for evaluation in published.read_all(bus, topics):
        alive()
        found.setdefault(evaluation.generation, GenerationDrift(evaluation.generation)).moved(evaluation)
    return [found[number] for number in sorted(found)]


def _by_generation(records: Iterable[Record]) -> dict[int, list[Prediction]]:
    """The answers that a generation gave."""
    found: dict[int, list[Prediction]] = {}
    for record in records:
        try:
            prediction = decode("predictions", record.key, record.value, record.headers)
        except InvalidEvent as error:
            log.warning("passed over: %s", error.at(record.topic, record.partition, record.offset))
            continue
        assert isinstance(prediction, Prediction)
        if prediction.generation is not None:
            found.setdefault(prediction.generation, []).append(prediction)
    return found
