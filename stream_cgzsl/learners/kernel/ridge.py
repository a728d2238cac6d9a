"""A baseline: ridge regression from attributes to class means, cosine, the offset from held-out rows and classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from stream_cgzsl.learners.calibration.curves import AccuracyCurves
from stream_cgzsl.learners.calibration.held_out import Scorer, measure_accuracies
from stream_cgzsl.learners.interface import Monitor, Snapshot, Space
from stream_cgzsl.learners.kernel.projection import regression
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.features import transformed
from stream_cgzsl.learners.statistics.learner import Lesson, StatisticsLearner
from stream_cgzsl.learners.statistics.shared_space import SharedSpace
from stream_cgzsl.learners.whitened.space import scaled_attributes
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.cuda import scores, unit
from stream_cgzsl.serving.generation import Generation


@dataclass(frozen=True)
class RidgeOptions:
    """It has none."""


class _Fitted(NamedTuple):
    centre: torch.Tensor  # [features]
    vectors: torch.Tensor  # [classes, features], of length 1


class Ridge(StatisticsLearner):
    """Seen classes are at their means, unseen ones where a linear map of the attributes predicts them."""

    name = "ridge"

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(RidgeOptions, options, self.name)

    def _train(self, lesson: Lesson, monitor: Monitor) -> Snapshot:
        curves, window = AccuracyCurves.restore(self._memory), lesson.window
        return measure_accuracies(curves, window, lesson.before, self._scorer, self.device, monitor.check).snapshot()

    def _publish(self, number: int, statistics: ClassStatistics, shared: SharedSpace, memory: Snapshot) -> Generation:
        curves = AccuracyCurves.restore(memory)
        fitted = self._fit(statistics)
        return Generation(
            number=number,
            class_ids=statistics.class_ids,
            seen=statistics.seen,
            vectors=fitted.vectors.cpu().numpy(),
            biases=-curves.best_offset() * statistics.seen,
            centre=fitted.centre.cpu().numpy(),
            transform=statistics.transform,
            calibration={**shared.record(), **curves.record()},
        )

    def _fit(self, statistics: ClassStatistics) -> _Fitted:
        seen = torch.from_numpy(statistics.seen).to(self.device)
        means = torch.from_numpy(statistics.means).to(self.device)
        centre = means.mean(dim=0) if len(means) > 1 else torch.zeros_like(means[0])
        attributes = scaled_attributes(torch.from_numpy(statistics.attributes).to(self.device), seen)
        keep, rest = seen.nonzero()[:, 0], (~seen).nonzero()[:, 0]
        vectors = means.new_zeros((len(seen), means.shape[1]))
        vectors[keep] = means - centre
        vectors[rest] = regression(attributes, keep, rest, rbf=0) @ (means - centre)
        return _Fitted(centre, unit(vectors))

    def _scorer(self, statistics: ClassStatistics) -> Scorer:
        fitted, transform = self._fit(statistics), statistics.transform

        def score(rows: Array) -> Array:
            published = transformed(rows, transform, self.device)
            found: Array = scores(published, fitted.vectors, 0.0, fitted.centre).cpu().numpy()
            return found

        return score
