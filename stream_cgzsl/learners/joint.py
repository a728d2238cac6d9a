"""A bound, for benchmarks only: `episodic` trained on every real feature so far, which it keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from stream_cgzsl.generation import Array
from stream_cgzsl.learners.base import Lesson
from stream_cgzsl.learners.episodes import Source
from stream_cgzsl.learners.episodic import Episodic
from stream_cgzsl.learners.features import transformed, unit
from stream_cgzsl.learners.interface import Monitor, Snapshot
from stream_cgzsl.learners.standard import Standard


class Joint(Episodic):
    """Memory: that of `episodic`, and all rows of every seen class. It grows without bound."""

    name = "joint"

    def _train(self, lesson: Lesson, monitor: Monitor) -> Snapshot:
        memory = super()._train(lesson, monitor)
        rows = {f"rows.{class_id}": rows for class_id, rows in self._rows(lesson).items()}
        return Snapshot({**memory.arrays, **rows}, memory.meta)

    def _rows(self, lesson: Lesson) -> dict[str, Array]:
        """Rows of every class seen after the lesson. A class that was retired since has lost its own."""
        rows: dict[str, Array] = {}
        for class_id in lesson.after.moments.counts:
            old = [self._memory.arrays[f"rows.{class_id}"]] if class_id in lesson.before.moments.counts else []
            new = [lesson.window.features[class_id].rows] if class_id in lesson.window.features else []
            rows[class_id] = np.concatenate([np.asarray(part, np.float32) for part in (*old, *new)])
        return rows

    def generate(self, class_ids: Sequence[str], rows: int) -> None:
        """It has the real rows and replays nothing."""

    def _source(self, lesson: Lesson, standard: Standard, directions: torch.Tensor, random: torch.Generator) -> Source:
        rows = self._rows(lesson)
        published = standard.whitening.out_of(directions)
        products = []
        for class_id in lesson.after.class_ids:
            if class_id in rows:
                x = unit(transformed(rows[class_id], lesson.after.transform, self.device) - standard.centre)
                products.append((standard.whitening.gain * x @ published.T).to(torch.float32))
        return _RealRows(products, random)


class _RealRows:
    """Rows of every seen class, as products; each `take` picks some at random."""

    def __init__(self, products: list[torch.Tensor], random: torch.Generator) -> None:
        self._products = torch.cat(products)
        self._sizes = torch.tensor([len(part) for part in products])
        self._starts = self._sizes.cumsum(0) - self._sizes
        self._random = random

    def take(self, labels: torch.Tensor, turn: int) -> torch.Tensor:  # noqa: ARG002 - no turn repeats another
        label = labels.cpu()
        chosen = (torch.rand(len(label), generator=self._random, dtype=torch.float64) * self._sizes[label]).long()
        return self._products[(self._starts[label] + chosen).to(labels.device)]
