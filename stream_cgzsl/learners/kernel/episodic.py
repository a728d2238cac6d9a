"""The default learner: attribute weights and the seen offset are trained on classes it hides from itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stream_cgzsl.errors import TrainingFailed
from stream_cgzsl.learners.interface import Monitor, Snapshot, Space
from stream_cgzsl.learners.kernel.episodes import BATCH, FEWEST, OFFSET, Episodes, Recipe, Rows, Trained, train
from stream_cgzsl.learners.kernel.gaussian_replay import GaussianReplay, gaussian_features
from stream_cgzsl.learners.kernel.projection import RBF, project
from stream_cgzsl.learners.numerics.randomness import generator
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.learner import Lesson, StatisticsLearner
from stream_cgzsl.learners.statistics.shared_space import SharedSpace, decide_shared
from stream_cgzsl.learners.whitened.publication import EXPONENT, LEAN, head, publish
from stream_cgzsl.learners.whitened.space import PRIOR, SpaceCache, WhitenedSpace
from stream_cgzsl.serving.generation import Generation


@dataclass(frozen=True)
class EpisodicOptions:
    """Each can be switched off to see what it brings; none needs tuning."""

    weights: bool = True  # one learned weight per attribute
    score_form: bool = True  # between cosine and a Gaussian log-density; off: cosine
    prior: bool = True  # in a shared space, a class's own vector is half of what is expected of its mean
    whitening: bool = True
    rbf: bool = True  # the part of the kernel that is not linear

    @property
    def recipe(self) -> Recipe:
        return Recipe(
            exponent=EXPONENT if self.score_form else 1.0,
            lean=LEAN if self.score_form else 0.0,
            prior=PRIOR if self.prior else 0.0,
            rbf=RBF if self.rbf else 0.0,
            weigh=self.weights,
        )


class Episodic(StatisticsLearner):
    """Memory: class statistics, one weight per attribute and the offset."""

    name = "episodic"

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(EpisodicOptions, options, self.name)
        self._spaces = SpaceCache(self.device, enabled=self.options.whitening)

    def _train(self, lesson: Lesson, monitor: Monitor) -> Snapshot:
        if not lesson.after.seen.any():
            return self._memory
        rng = generator(self.space.seed, lesson.window.number, "episodes")
        space = self._spaces.get(lesson.after, decide_shared(lesson.after).shared)
        episodes = Episodes(space, self.options.recipe)
        if episodes.classes < FEWEST:
            trained = Trained(torch.zeros(self.space.attributes), OFFSET)
        else:
            trained = train(episodes, self._rows(lesson, space, episodes.directions, rng), rng, monitor)
        if not (bool(torch.isfinite(trained.weights).all()) and np.isfinite(trained.offset)):
            raise TrainingFailed(
                f"window {lesson.window.number}: the attribute weights did not stay finite; nothing was learned"
            )
        return Snapshot({"weights": trained.weights.cpu().numpy()}, {"offset": trained.offset})

    def _rows(
        self,
        lesson: Lesson,  # noqa: ARG002 - `joint` trains on its rows
        space: WhitenedSpace,
        directions: torch.Tensor,
        rng: torch.Generator,
    ) -> Rows:
        """What episodes are trained on: replayed features of every seen class."""
        return GaussianReplay(space, directions, BATCH, rng)

    def _publish(self, number: int, statistics: ClassStatistics, shared: SharedSpace, memory: Snapshot) -> Generation:
        space = self._spaces.get(statistics, shared.shared)
        recipe = self.options.recipe
        weights = torch.tensor(memory.arrays["weights"], dtype=torch.float64, device=self.device)
        projections = project(space, weights, recipe.prior, recipe.rbf)
        answers = head(projections, space.signal, recipe.exponent, recipe.lean)
        offset = float(memory.meta["offset"])
        return publish(number, statistics, space, answers, offset, {**shared.record(), "offset": round(offset, 9)})

    def generate(self, class_ids: Sequence[str], rows: int) -> npt.NDArray[np.float32] | None:
        return gaussian_features(self._statistics, class_ids, rows, self.device)
