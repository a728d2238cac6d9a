"""An upper bound, for benchmarks only: `episodic` trained on every real feature so far, all of which it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch

from stream_cgzsl.learners.interface import Keeps, Monitor, Snapshot
from stream_cgzsl.learners.kernel.episodes import Rows
from stream_cgzsl.learners.kernel.episodic import Episodic
from stream_cgzsl.learners.statistics.features import transformed
from stream_cgzsl.learners.statistics.learner import Lesson
from stream_cgzsl.learners.whitened.space import WhitenedSpace
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.cuda import unit


class Joint(Episodic):
    """Memory: that of `episodic`, and all rows of every seen class. It grows without bound."""

    name = "joint"
    keeps: ClassVar[Keeps] = "everything"

    def _train(self, lesson: Lesson, monitor: Monitor) -> Snapshot:
        memory = super()._train(lesson, monitor)
        rows = {f"rows.{class_id}": rows for class_id, rows in self._kept_rows(lesson).items()}
        return Snapshot({**memory.arrays, **rows}, memory.meta)

    def _kept_rows(self, lesson: Lesson) -> dict[str, Array]:
        """Rows of every class seen after the lesson; those of retired classes are gone."""
        rows: dict[str, Array] = {}
        for class_id in lesson.after.moments.counts:
            old = [self._memory.arrays[f"rows.{class_id}"]] if class_id in lesson.before.moments.counts else []
            new = [lesson.window.features[class_id].rows] if class_id in lesson.window.features else []
            rows[class_id] = np.concatenate([np.asarray(part, np.float32) for part in (*old, *new)])
        return rows

    def generate(self, class_ids: Sequence[str], rows: int) -> None:
        """It has the real rows and replays nothing."""

    def _rows(self, lesson: Lesson, space: WhitenedSpace, directions: torch.Tensor, rng: torch.Generator) -> Rows:
        rows = self._kept_rows(lesson)
        published = space.whitening.out_of(directions)
        products = []
        for class_id in lesson.after.class_ids:
            if class_id in rows:
                x = unit(transformed(rows[class_id], lesson.after.transform, self.device) - space.centre)
                products.append((space.whitening.gain * x @ published.T).to(torch.float32))
        return _RealRows(products, rng)


class _RealRows:
    """Rows of every seen class, as products; each `take` picks some at random."""

    def __init__(self, products: list[torch.Tensor], rng: torch.Generator) -> None:
        self._products = torch.cat(products)
        self._sizes = torch.tensor([len(part) for part in products])
        self._starts = self._sizes.cumsum(0) - self._sizes
        self._rng = rng

    def take(self, labels: torch.Tensor, turn: int) -> torch.Tensor:  # noqa: ARG002 - no turn repeats another
        label = labels.cpu()
        chosen = (torch.rand(len(label), generator=self._rng, dtype=torch.float64) * self._sizes[label]).long()
        return self._products[(self._starts[label] + chosen).to(labels.device)]
