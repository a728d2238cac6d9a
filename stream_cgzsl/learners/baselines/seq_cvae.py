"""Seq-CVAE: Mishra, Reddy, Mittal and Murthy, "A Generative Model for Zero Shot Learning Using Conditional Variational
Autoencoders", CVPR workshops 2018; the same weights trained on one window after the other.

A conditional variational autoencoder makes rows of a class from its attributes; a linear classifier of rows at length 1
is trained on made rows of all classes. It keeps nothing, so earlier windows are forgotten as their weights are.

Doubtful: the authors' classifier is a linear SVM (C 100), here it is a softmax. Their hidden size, epochs and rate are
not printed: 512, 25 and Adam's 1e-3 are used. Rows are not scaled before, so how much the divergence counts against the
squared error depends on the features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.learners.baselines.generative import Generative, HeadOptions
from stream_cgzsl.learners.baselines.heads import Head
from stream_cgzsl.learners.baselines.learner import Lesson, Steps
from stream_cgzsl.learners.baselines.networks import Layers, adam, descend, to_array, xavier
from stream_cgzsl.learners.baselines.roster import Roster
from stream_cgzsl.learners.baselines.rows import Rows, epochs, joined
from stream_cgzsl.learners.baselines.vae import divergence, dropped, sampled
from stream_cgzsl.learners.interface import Monitor, Space
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.generation import Generation

ENCODER, DECODER = ("relu", "relu", "linear"), ("relu", "linear")


@dataclass(frozen=True)
class CvaeOptions(HeadOptions):
    hidden: int = 512
    decoder_hidden: int = 1024
    latent: int = 50
    dropout: float = 0.7
    learning_rate: float = 1e-3
    epochs: int = 25
    batch: int = 50


@dataclass(frozen=True, eq=False)
class Cvae:
    encoder: Layers  # [x; a] -> mean and logarithm of the variance
    decoder: Layers  # [z; a] -> x

    def loss(self, x: Tensor, a: Tensor, dropout: float, rng: torch.Generator) -> dict[str, Tensor]:
        """Squared error and divergence, each summed over a row and averaged over rows."""
        (w1, b1), (w2, b2), (w3, b3) = self.encoder.weights
        h = dropped(F.relu(F.linear(torch.cat((x, a), 1), w1, b1)), dropout, rng)
        mean, log_variance = F.linear(F.relu(F.linear(h, w2, b2)), w3, b3).chunk(2, 1)
        made = self.decoder(torch.cat((sampled(mean, log_variance, rng), a), 1))
        squares = (made - x).square().sum() / len(x)
        return {"reconstruction": squares, "divergence": divergence(mean, log_variance) / len(x)}


class SeqCvae(Generative[Cvae]):
    """Memory: the autoencoder and the head."""

    name = "seq-cvae"
    real_rows = False
    options: CvaeOptions

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = self._parsed(options)

    def _parsed(self, options: Mapping[str, Any] | None) -> CvaeOptions:
        return parse_options(CvaeOptions, options, self.name)

    def _trained(
        self, lesson: Lesson, exemplars: Rows, networks: Cvae | None, monitor: Monitor
    ) -> tuple[Cvae, Mapping[str, Array]]:
        o, rows = self.options, joined(lesson.rows, exemplars)
        cvae = networks or self._started(lesson.number)
        attributes = self._attributes(lesson.after)
        optimiser = adam((*cvae.encoder.parameters, *cvae.decoder.parameters), o.learning_rate)
        rng = self._rng(lesson.number, "training")
        steps = Steps(monitor, o.epochs * -(-len(rows) // o.batch))
        for _, batch in epochs(len(rows), o.batch, o.epochs, rng):
            steps.begin()
            losses = cvae.loss(rows.x[batch], attributes[rows.y[batch]], o.dropout, rng)
            descend(optimiser, losses["reconstruction"] + losses["divergence"])
            steps.end(losses)
        return cvae, {**cvae.encoder.arrays("encoder"), **cvae.decoder.arrays("decoder")}

    def _started(self, number: int) -> Cvae:
        o, a, x, rng = self.options, self.space.attributes, self.space.features, self._rng(number, "networks")
        sizes = ((x + a, o.hidden, o.hidden, 2 * o.latent), ENCODER), ((o.latent + a, o.decoder_hidden, x), DECODER)
        return Cvae(*(Layers.started(size, kinds, rng, self.device, xavier(1.0)) for size, kinds in sizes))

    def _networks(self, arrays: Mapping[str, Array]) -> Cvae:
        parts = ("encoder", ENCODER), ("decoder", DECODER)
        return Cvae(*(Layers.loaded(name, arrays, kinds, self.device) for name, kinds in parts))

    def _inputs(self, networks: Cvae, x: Tensor, rng: torch.Generator) -> Tensor:  # noqa: ARG002
        return F.normalize(x)

    def _samples(self, networks: Cvae, attributes: Tensor, rng: torch.Generator) -> Tensor:
        z = torch.randn(len(attributes), self.options.latent, generator=rng).to(self.device)
        return F.normalize(networks.decoder(torch.cat((z, attributes), 1)))

    def _served(self, number: int, roster: Roster, networks: Cvae, head: Head) -> Generation:  # noqa: ARG002
        return Generation(
            number=number,
            class_ids=roster.class_ids,
            seen=roster.seen,
            vectors=to_array(head.w),
            biases=to_array(head.b),
            centre=np.zeros(self.space.features, np.float32),
        )
