"""The default learner: a description is the prior of a class mean, and every example is evidence about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stream_cgzsl.errors import TrainingFailed
from stream_cgzsl.learners.interface import Monitor, Snapshot, Space
from stream_cgzsl.learners.kernel.class_process import ClassProcess, class_process, posterior, scores_of
from stream_cgzsl.learners.kernel.evidence_episodes import FEWEST, OFFSET, EvidenceEpisodes, Trained, train
from stream_cgzsl.learners.kernel.gaussian_replay import gaussian_features
from stream_cgzsl.learners.numerics.randomness import generator
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.learner import Lesson, StatisticsLearner
from stream_cgzsl.learners.statistics.shared_space import SharedSpace, decide_shared
from stream_cgzsl.learners.whitened.publication import publish
from stream_cgzsl.serving.generation import Generation


@dataclass(frozen=True)
class EvidenceOptions:
    """None needs tuning."""

    weights: bool = True  # one learned weight per attribute


class Evidence(StatisticsLearner):
    """Memory: class statistics, one weight per attribute and the offset."""

    name = "evidence"

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(EvidenceOptions, options, self.name)
        self._last: tuple[ClassStatistics, bool, ClassProcess] | None = None

    def _train(self, lesson: Lesson, monitor: Monitor) -> Snapshot:
        if not lesson.after.seen.any():
            return self._memory
        number = lesson.window.number
        process = self._process(lesson.after, decide_shared(lesson.after).shared)
        if len(process.counts) < FEWEST:
            trained = Trained(torch.zeros(self.space.attributes), OFFSET)
        else:
            rng = generator(self.space.seed, number, "episodes")
            trained = train(EvidenceEpisodes(process, rng), rng, monitor, self.options.weights)
        if not (bool(torch.isfinite(trained.weights).all()) and np.isfinite(trained.offset)):
            raise TrainingFailed(
                f"window {number}: training the attribute weights did not stay finite; nothing was learned"
            )
        return Snapshot({"weights": trained.weights.cpu().numpy()}, {"offset": trained.offset})

    def _publish(self, number: int, statistics: ClassStatistics, shared: SharedSpace, memory: Snapshot) -> Generation:
        process = self._process(statistics, shared.shared)
        weights = torch.tensor(memory.arrays["weights"], dtype=torch.float64, device=self.device)
        offset = float(memory.meta["offset"])
        answers = scores_of(posterior(process, weights), process.signal, offset)
        return publish(number, statistics, process, answers, 0.0, {**shared.record(), "offset": round(offset, 9)})

    def _process(self, statistics: ClassStatistics, shared: bool) -> ClassProcess:
        """Steps 3 to 5, with one whitening for as long as no example comes."""
        last, whitening = self._last, None
        if last is not None:
            if last[0] is statistics and last[1] == shared:
                return last[2]
            if last[0].moments is statistics.moments:
                whitening = last[2].whitening
        self._last = last = None  # released before the new one is computed
        process = class_process(statistics, shared, self.device, whitening)
        self._last = statistics, shared, process
        return process

    def generate(self, class_ids: Sequence[str], rows: int) -> npt.NDArray[np.float32] | None:
        return gaussian_features(self._statistics, class_ids, rows, self.device)
