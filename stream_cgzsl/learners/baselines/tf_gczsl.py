"""Tf-GCZSL: Gautam, Parameswaran, Mishra and Sundaram, "Tf-GCZSL: Task-Free Generalized Continual Zero-Shot Learning",
Neural Networks 2022.

CADA-VAE with 50 latent numbers and experience replay: beside each batch of the window, a batch of exemplars. It keeps
exemplars, a reservoir of `memory` rows a class.

Doubtful: the authors' reservoir is one over all rows, of 10 times the number of classes; here each class has its own,
so that the bound does not depend on how many classes will ever come. Their dark replay and distillation are off in what
they published, and absent here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from stream_cgzsl.learners.baselines.learner import Lesson
from stream_cgzsl.learners.baselines.rows import Rows, joined
from stream_cgzsl.learners.baselines.seq_cada import CadaOptions, SeqCada
from stream_cgzsl.learners.interface import Keeps
from stream_cgzsl.learners.options import parse_options


@dataclass(frozen=True)
class TfGczslOptions(CadaOptions):
    latent: int = 50
    memory: int = 10
    memory_batch: int = 100


class TfGczsl(SeqCada):
    """Memory: that of Seq-CADA, and the exemplars."""

    name = "tf-gczsl"
    keeps: ClassVar[Keeps] = "exemplars"
    options: TfGczslOptions

    def _parsed(self, options: Mapping[str, Any] | None) -> TfGczslOptions:
        return parse_options(TfGczslOptions, options, self.name)

    def _mixed(self, lesson: Lesson, exemplars: Rows) -> tuple[Rows, int]:
        return joined(lesson.rows, exemplars), min(self.options.memory_batch, len(exemplars))
