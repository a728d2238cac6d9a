"""A yardstick: ridge regression from attributes to class means, cosine, the offset from evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from stream_cgzsl.generation import Array, Generation
from stream_cgzsl.learners.base import Lesson, StatisticsLearner
from stream_cgzsl.learners.calibration import Evidence
from stream_cgzsl.learners.evidence import Scorer, gather_evidence
from stream_cgzsl.learners.features import transformed, unit
from stream_cgzsl.learners.interface import Monitor, Snapshot, Space
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.projection import regression
from stream_cgzsl.learners.shared import Shared
from stream_cgzsl.learners.standard import standard_attributes
from stream_cgzsl.learners.statistics import Statistics


@dataclass(frozen=True)
class RidgeOptions:
    """It has none."""


class _Fitted(NamedTuple):
    centre: torch.Tensor  # [features]
    vectors: torch.Tensor  # [classes, features], of length 1


class Ridge(StatisticsLearner):
    """Seen classes are at their means, unseen ones where a linear map of the attributes expects them."""

    name = "ridge"

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(RidgeOptions, options, self.name)

    def _train(self, lesson: Lesson, monitor: Monitor) -> Snapshot:
        evidence = Evidence.restore(self._memory)
        evidence = gather_evidence(evidence, lesson.window, lesson.before, self._scorer, self.device, monitor.check)
        return evidence.snapshot()

    def _publish(self, number: int, statistics: Statistics, shared: Shared, memory: Snapshot) -> Generation:
        evidence = Evidence.restore(memory)
        fitted = self._fit(statistics)
        return Generation(
            number=number,
            class_ids=statistics.class_ids,
            seen=statistics.seen,
            vectors=fitted.vectors.cpu().numpy(),
            biases=-evidence.offset() * statistics.seen,
            centre=fitted.centre.cpu().numpy(),
            transform=statistics.transform,
            calibration={**shared.record(), **evidence.record()},
        )

    def _fit(self, statistics: Statistics) -> _Fitted:
        seen = torch.from_numpy(statistics.seen).to(self.device)
        means = torch.from_numpy(statistics.means).to(self.device)
        centre = means.mean(dim=0) if len(means) > 1 else torch.zeros_like(means[0])
        attributes = standard_attributes(torch.from_numpy(statistics.attributes).to(self.device), seen)
        keep, rest = seen.nonzero()[:, 0], (~seen).nonzero()[:, 0]
        vectors = means.new_zeros((len(seen), means.shape[1]))
        vectors[keep] = means - centre
        vectors[rest] = regression(attributes, keep, rest, rbf=0) @ (means - centre)
        return _Fitted(centre, unit(vectors))

    def _scorer(self, statistics: Statistics) -> Scorer:
        fitted, transform = self._fit(statistics), statistics.transform

        def score(rows: Array) -> Array:
            scores: Array = (
                (unit(transformed(rows, transform, self.device) - fitted.centre) @ fitted.vectors.T).cpu().numpy()
            )
            return scores

        return score
