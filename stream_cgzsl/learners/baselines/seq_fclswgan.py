"""Seq-fCLSWGAN: Xian, Lorenz, Schiele and Akata, "Feature Generating Networks for Zero-Shot Learning", CVPR 2018; the
same weights trained on one window after the other.

A Wasserstein GAN makes rows of a class from its attributes; a classifier of the window's classes, trained before, wants
to recognise them. The published head is a softmax on the window's own rows, and on made ones of all other classes. It
keeps nothing.

Doubtful: the authors' rate is 1e-5 for AWA and 1e-4 for CUB; the second is the default here. The range of features is
that of the first window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.learners.baselines.critic import Critic, gradients
from stream_cgzsl.learners.baselines.generative import Generative, HeadOptions
from stream_cgzsl.learners.baselines.heads import Head
from stream_cgzsl.learners.baselines.learner import Lesson, Steps
from stream_cgzsl.learners.baselines.networks import Layers, adam, descend, normal, to_array, to_tensor
from stream_cgzsl.learners.baselines.roster import Roster
from stream_cgzsl.learners.baselines.rows import Rows, within
from stream_cgzsl.learners.baselines.scaling import Range
from stream_cgzsl.learners.interface import Monitor, Space
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.generation import Generation

GENERATOR = ("leaky-relu", "relu")


@dataclass(frozen=True)
class FclswganOptions(HeadOptions):
    """`classifier` weighs the classifier's loss in the generator's."""

    hidden: int = 4096
    learning_rate: float = 1e-4
    momentum: float = 0.5
    penalty: float = 10.0
    critic_steps: int = 5
    classifier: float = 0.01
    classifier_epochs: int = 50
    epochs: int = 30
    batch: int = 64


@dataclass(frozen=True, eq=False)
class Gan:
    generator: Layers  # [z; a] -> scaled row
    critic: Critic
    scale: Range

    @classmethod
    def started(cls, space: Space, hidden: int, scale: Range, rng: torch.Generator) -> Gan:
        device, start = scale.least.device, normal(0.02)
        sizes = 2 * space.attributes, hidden, space.features
        generator = Layers.started(sizes, GENERATOR, rng, device, start)
        (w, b1), (v, _) = start(hidden, space.features, rng), start(hidden, space.attributes, rng)
        w2, b2 = start(1, hidden, rng)
        return cls(generator, Critic(*(part.to(device) for part in (w, v, b1, w2[0], b2))), scale)

    def made(self, a: Tensor, rng: torch.Generator) -> Tensor:
        """Scaled rows, one for each of [rows, attributes]; the noise is drawn on the CPU."""
        z = torch.randn(a.shape, generator=rng).to(a.device)
        return self.generator(torch.cat((z, a), 1))

    def arrays(self) -> dict[str, Array]:
        critic = {f"critic.{name}": to_array(part) for name, part in self.critic._asdict().items()}
        return {**self.generator.arrays("generator"), **critic, **self.scale.arrays()}

    @classmethod
    def loaded(cls, arrays: Mapping[str, Array], device: torch.device) -> Gan:
        critic = Critic(*(to_tensor(arrays[f"critic.{name}"], device) for name in Critic._fields))
        return cls(Layers.loaded("generator", arrays, GENERATOR, device), critic, Range.loaded(arrays, device))


class SeqFclswgan(Generative[Gan]):
    """Memory: the generator, the critic, the range of features, and the head."""

    name = "seq-fclswgan"
    options: FclswganOptions

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(FclswganOptions, options, self.name)

    def _trained(
        self,
        lesson: Lesson,
        exemplars: Rows,  # noqa: ARG002
        networks: Gan | None,
        monitor: Monitor,
    ) -> tuple[Gan, Mapping[str, Array]]:
        o, count = self.options, len(lesson.rows)
        rng = self._rng(lesson.number, "networks")
        gan = networks or Gan.started(self.space, o.hidden, Range.of(lesson.rows.x), rng)
        rng = self._rng(lesson.number, "training")
        classes = torch.unique(lesson.rows.y)
        attributes, y = self._attributes(lesson.after)[classes], within(classes, lesson.rows.y)
        rows = Rows(gan.scale.scaled(lesson.rows.x), y)
        classifier = Head.fitted(rows, len(classes), 1e-3, o.classifier_epochs, o.batch, rng, monitor.check)
        betas = o.momentum, 0.999
        optimise_g = adam(gan.generator.parameters, o.learning_rate, betas=betas)
        optimise_d = adam(gan.critic, o.learning_rate, betas=betas)
        fixed = Critic(*(part.detach() for part in gan.critic))  # the same numbers, which G cannot move
        iterations = o.epochs * -(-count // o.batch)
        steps = Steps(monitor, iterations)
        for _ in range(iterations):
            steps.begin()
            for _ in range(o.critic_steps):
                monitor.check()
                batch = torch.randperm(count, generator=rng)[: o.batch]
                x, a = rows.x[batch], attributes[y[batch]]
                with torch.no_grad():
                    made = gan.made(a, rng)
                share = torch.rand(len(batch), 1, generator=rng).to(x.device)
                found = gradients(fixed, x, made, a, share, o.penalty)
                for part, gradient in zip(gan.critic, found.gradients, strict=True):
                    part.grad = gradient
                optimise_d.step()
            made = gan.made(a, rng)
            recognised = F.cross_entropy(F.linear(made, classifier.w, classifier.b), y[batch])
            descend(optimise_g, o.classifier * recognised - fixed(made, a).mean())
            steps.end({"distance": found.distance, "penalty": found.penalty, "classifier": recognised})
        return gan, gan.arrays()

    def _networks(self, arrays: Mapping[str, Array]) -> Gan:
        return Gan.loaded(arrays, self.device)

    def _inputs(self, networks: Gan, x: Tensor, rng: torch.Generator) -> Tensor:  # noqa: ARG002
        return networks.scale.scaled(x)

    def _samples(self, networks: Gan, attributes: Tensor, rng: torch.Generator) -> Tensor:
        return networks.made(attributes, rng)

    def _features(self, networks: Gan, attributes: Tensor, rng: torch.Generator) -> Tensor:
        return F.normalize(networks.scale.restored(networks.made(attributes, rng)))

    def _served(self, number: int, roster: Roster, networks: Gan, head: Head) -> Generation:
        vectors, biases = networks.scale.folded(head.w, head.b)
        return Generation(
            number=number,
            class_ids=roster.class_ids,
            seen=roster.seen,
            vectors=to_array(vectors),
            biases=to_array(biases),
            centre=np.zeros(self.space.features, np.float32),
            metric="linear",
        )
