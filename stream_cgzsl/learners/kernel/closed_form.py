"""`episodic` without its training: attributes as they are, the offset from held-out rows and classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_cgzsl.learners.calibration.curves import AccuracyCurves
from stream_cgzsl.learners.calibration.held_out import Scorer, measure_accuracies
from stream_cgzsl.learners.interface import Monitor, Snapshot, Space
from stream_cgzsl.learners.kernel.gaussian_replay import gaussian_features
from stream_cgzsl.learners.kernel.projection import project
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.learner import Lesson, StatisticsLearner
from stream_cgzsl.learners.statistics.shared_space import SharedSpace, decide_shared
from stream_cgzsl.learners.whitened.publication import head, publish, scorer
from stream_cgzsl.learners.whitened.space import SpaceCache, whitened_space
from stream_cgzsl.learners.whitened.whitening import whiten
from stream_cgzsl.serving.generation import Generation


@dataclass(frozen=True)
class ClosedFormOptions:
    """It has none: the method's constants are the method."""


class ClosedForm(StatisticsLearner):
    """One factorisation and one regression per window; memory: class statistics and two accuracy curves."""

    name = "closed-form"

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(ClosedFormOptions, options, self.name)
        self._spaces = SpaceCache(self.device)

    def _train(self, lesson: Lesson, monitor: Monitor) -> Snapshot:
        curves, window = AccuracyCurves.restore(self._memory), lesson.window
        return measure_accuracies(curves, window, lesson.before, self._scorer, self.device, monitor.check).snapshot()

    def _publish(self, number: int, statistics: ClassStatistics, shared: SharedSpace, memory: Snapshot) -> Generation:
        curves = AccuracyCurves.restore(memory)
        space = self._spaces.get(statistics, shared.shared)
        answers = head(project(space), space.signal)
        calibration = {**shared.record(), **curves.record()}
        return publish(number, statistics, space, answers, curves.best_offset(), calibration)

    def _scorer(self, statistics: ClassStatistics) -> Scorer:
        space = whitened_space(statistics, decide_shared(statistics).shared, whiten(statistics.moments, self.device))
        return scorer(space, head(project(space), space.signal), statistics.transform)

    def generate(self, class_ids: Sequence[str], rows: int) -> npt.NDArray[np.float32] | None:
        return gaussian_features(self._statistics, class_ids, rows, self.device)
