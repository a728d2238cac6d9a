"""Seq-CADA: CADA-VAE (see `cada.py`), the same weights trained on one window after the other. It keeps nothing.

A linear softmax in the latent space is trained on codes of the window's rows where a class has some, and of attributes
where it has none. Doubtful: the warm-up of the losses starts anew in each window, and the range of features is that of
the first one. As in the authors' code, one random number serves all latent numbers of a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.learners.baselines.cada import Cada, total
from stream_cgzsl.learners.baselines.generative import Generative, HeadOptions
from stream_cgzsl.learners.baselines.heads import Head
from stream_cgzsl.learners.baselines.learner import Lesson, Steps
from stream_cgzsl.learners.baselines.networks import adam, descend, to_array
from stream_cgzsl.learners.baselines.roster import Roster
from stream_cgzsl.learners.baselines.rows import Rows, epochs, joined
from stream_cgzsl.learners.baselines.scaling import Range
from stream_cgzsl.learners.interface import Monitor, Space
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.encoder import Layer
from stream_cgzsl.serving.generation import Generation


@dataclass(frozen=True)
class CadaOptions(HeadOptions):
    """`width` is a share of the authors' hidden sizes."""

    seen_samples: int = 200
    unseen_samples: int = 400
    head_batch: int = 32
    latent: int = 64
    width: float = 1.0
    learning_rate: float = 1.5e-4
    epochs: int = 100
    batch: int = 50


class SeqCada(Generative[Cada]):
    """Memory: the two autoencoders, the range of features, and the head."""

    name = "seq-cada"
    options: CadaOptions

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = self._parsed(options)

    def _parsed(self, options: Mapping[str, Any] | None) -> CadaOptions:
        return parse_options(CadaOptions, options, self.name)

    def _trained(
        self, lesson: Lesson, exemplars: Rows, networks: Cada | None, monitor: Monitor
    ) -> tuple[Cada, Mapping[str, Array]]:
        o = self.options
        sizes = self.space.features, self.space.attributes, o.latent, o.width
        rng = self._rng(lesson.number, "networks")
        cada = networks or Cada.started(*sizes, Range.of(lesson.rows.x), rng)
        rows, beside = self._mixed(lesson, exemplars)
        x, y = cada.scale.scaled(rows.x), rows.y
        first, attributes = len(lesson.rows) if beside else len(rows), self._attributes(lesson.after)
        optimiser = adam(cada.parameters, o.learning_rate, amsgrad=True)
        rng = self._rng(lesson.number, "training")
        steps = Steps(monitor, o.epochs * -(-first // o.batch))
        for epoch, batch in epochs(first, o.batch, o.epochs, rng):
            steps.begin()
            if beside:
                replayed = first + torch.randperm(len(rows) - first, generator=rng)[:beside]
                batch = torch.cat((batch, replayed))
            losses = cada.losses(x[batch], attributes[y[batch]], rng)
            descend(optimiser, total(losses, epoch))
            steps.end(losses)
        return cada, cada.arrays()

    def _mixed(self, lesson: Lesson, exemplars: Rows) -> tuple[Rows, int]:
        """The rows to train on, and how many exemplars to draw beside each batch of the window's; 0: mix them."""
        return joined(lesson.rows, exemplars), 0

    def _networks(self, arrays: Mapping[str, Array]) -> Cada:
        return Cada.loaded(arrays, self.device)

    def _inputs(self, networks: Cada, x: Tensor, rng: torch.Generator) -> Tensor:
        return networks.code(x, rng)

    def _samples(self, networks: Cada, attributes: Tensor, rng: torch.Generator) -> Tensor:
        return networks.code_of_attributes(attributes, rng)

    def _features(self, networks: Cada, attributes: Tensor, rng: torch.Generator) -> Tensor:
        return F.normalize(networks.features(networks.code_of_attributes(attributes, rng)))

    def _served(self, number: int, roster: Roster, networks: Cada, head: Head) -> Generation:
        (w1, b1), (w2, b2) = networks.encoder()
        encoder = Layer(to_array(w1), to_array(b1), "relu"), Layer(to_array(w2), to_array(b2))
        return Generation(
            number=number,
            class_ids=roster.class_ids,
            seen=roster.seen,
            vectors=to_array(head.w),
            biases=to_array(head.b),
            centre=np.zeros(head.w.shape[1], np.float32),
            metric="linear",
            encoder=encoder,
        )
