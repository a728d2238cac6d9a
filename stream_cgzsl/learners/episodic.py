"""The default learner: attribute weights and the seen offset are learned on classes it hides from itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from stream_cgzsl.errors import TrainingFailed
from stream_cgzsl.generation import Generation
from stream_cgzsl.learners.base import Lesson
from stream_cgzsl.learners.draws import Draws
from stream_cgzsl.learners.episodes import BATCH, Recipe, Source, train
from stream_cgzsl.learners.interface import Monitor, Snapshot, Space
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.projection import EXPONENT, LEAN, PRIOR, RBF, head, project
from stream_cgzsl.learners.publication import publish
from stream_cgzsl.learners.randomness import generator
from stream_cgzsl.learners.shared import Shared, decide_shared
from stream_cgzsl.learners.standard import Standard
from stream_cgzsl.learners.standardising import StandardisingLearner
from stream_cgzsl.learners.statistics import Statistics


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


class Episodic(StandardisingLearner):
    """Memory: class statistics, one weight per attribute and the offset."""

    name = "episodic"

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(EpisodicOptions, options, self.name)
        self.whitened = self.options.whitening

    def _train(self, lesson: Lesson, monitor: Monitor) -> Snapshot:
        if not lesson.after.seen.any():
            return self._memory
        number = lesson.window.number
        random = generator(self.space.seed, number, "episodes")
        standard = self._standard(lesson.after, decide_shared(lesson.after).shared)

        def source(directions: torch.Tensor) -> Source:
            return self._source(lesson, standard, directions, random)

        trained = train(standard, self.options.recipe, source, random, monitor)
        if not (bool(torch.isfinite(trained.weights).all()) and np.isfinite(trained.offset)):
            raise TrainingFailed(
                f"window {number}: training the attribute weights did not stay finite; nothing was learned"
            )
        return Snapshot({"weights": trained.weights.cpu().numpy()}, {"offset": trained.offset})

    def _source(
        self,
        lesson: Lesson,  # noqa: ARG002 - replay needs no row of it; learners that train on rows do
        standard: Standard,
        directions: torch.Tensor,
        random: torch.Generator,
    ) -> Source:
        """What episodes are trained on: replayed features of every seen class."""
        return Draws(standard, directions, BATCH, random)

    def _publish(self, number: int, statistics: Statistics, shared: Shared, memory: Snapshot) -> Generation:
        standard = self._standard(statistics, shared.shared)
        recipe = self.options.recipe
        weights = torch.tensor(memory.arrays["weights"], dtype=torch.float64, device=self.device)
        projections = project(standard, weights, recipe.prior, recipe.rbf)
        offset = float(memory.meta["offset"])
        return publish(
            number,
            statistics,
            standard,
            head(projections, standard.signal, recipe.exponent, recipe.lean),
            offset,
            {**shared.record(), "offset": round(offset, 9)},
        )
