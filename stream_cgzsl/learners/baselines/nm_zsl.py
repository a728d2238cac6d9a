"""NM-ZSL: Skorokhodov and Elhoseiny, "Class Normalization for (Continual)? Generalized Zero-Shot Learning", ICLR 2021.

A network maps attributes to one prototype a class, and hidden units are standardised over classes. It is trained on
one task after the other with nothing against forgetting; each task's softmax is over its own classes, as in the
authors' continual trainers. It keeps nothing.

Doubtful: their code divides by the variance where their paper divides by the standard deviation, and so does this. The
factor 0.95 on seen scores was not used on CUB (`seen_factor=1.0`). The constants are those of their single-task code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners.baselines.learner import Baseline, Lesson, Steps
from stream_cgzsl.learners.baselines.networks import Layers, adam, descend, to_array, to_tensor, uniform, usual
from stream_cgzsl.learners.baselines.prototypes import cosine_loss, prototypes_generation
from stream_cgzsl.learners.baselines.roster import Roster
from stream_cgzsl.learners.baselines.rows import epochs, within
from stream_cgzsl.learners.interface import Monitor, Snapshot, Space
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.generation import Generation

MEMORY = 0.9
"""How much of the running mean and variance of a hidden unit stays at each step."""

EPSILON = 1e-5


@dataclass(frozen=True)
class NmZslOptions:
    """The learning rate is a tenth of itself after every `decay_every` epochs."""

    hidden: int = 1024
    learning_rate: float = 5e-4
    weight_decay: float = 1e-4
    decay_every: int = 25
    epochs: int = 50
    batch: int = 256
    scale: float = 25.0
    seen_factor: float = 0.95

    def __post_init__(self) -> None:
        for name in ("hidden", "decay_every", "epochs", "batch"):
            if getattr(self, name) < 1:
                raise UsageError(f"option {name!r} must be at least 1, not {getattr(self, name)}")


def moments(h: Tensor) -> tuple[Tensor, Tensor]:
    """Over classes: the mean and the unbiased variance, which is 0 for one class. h: [classes, units]"""
    variance = h.var(0) if len(h) > 1 else torch.zeros_like(h[0])
    return h.mean(0), variance


def standardised(h: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """h: [classes, units], mean and variance: [units]"""
    return (h - mean) / (variance + EPSILON)


class Prototyper:
    """Attributes [classes, attributes] -> prototypes [classes, features]."""

    def __init__(self, layers: Layers, running: list[Tensor]) -> None:
        self.layers = layers  # two hidden ones and the output
        self.running = running  # mean and variance of the two standardisations: four times [units]

    @classmethod
    def started(cls, space: Space, hidden: int, rng: torch.Generator, device: torch.device) -> Prototyper:
        sizes = space.attributes, hidden, hidden, space.features
        layers = Layers.started(sizes, _activations(space), rng, device, usual)
        w, _ = layers.weights[2]
        w.copy_(uniform(w.shape, math.sqrt(3 / (hidden * space.features)), rng))
        zeros, ones = (torch.full((hidden,), value, device=device) for value in (0.0, 1.0))
        return cls(layers, [zeros, ones, zeros.clone(), ones.clone()])

    def __call__(self, a: Tensor, training: bool = False) -> Tensor:
        """In training, hidden units are standardised over these classes, and the running moments follow."""
        (w1, b1), (w2, b2), (w3, b3) = self.layers.weights
        h = F.linear(F.relu(F.linear(a, w1, b1)), w2, b2)
        h = F.relu(self._standardised(h, 0, training))
        p = F.linear(self._standardised(h, 2, training), w3, b3)
        return F.relu(p) if self.layers.activations[2] == "relu" else p

    def _standardised(self, h: Tensor, first: int, training: bool) -> Tensor:
        if not training:
            return standardised(h, *self.running[first : first + 2])
        found = moments(h)
        for running, new in zip(self.running[first : first + 2], found, strict=True):
            running.mul_(MEMORY).add_(new.detach(), alpha=1 - MEMORY)
        return standardised(h, *found)

    def arrays(self) -> dict[str, Array]:
        running = {f"running{number}": to_array(tensor) for number, tensor in enumerate(self.running)}
        return {**self.layers.arrays("layers"), **running}

    @classmethod
    def loaded(cls, space: Space, arrays: Mapping[str, Array], device: torch.device) -> Prototyper:
        running = [to_tensor(arrays[f"running{number}"], device) for number in range(4)]
        return cls(Layers.loaded("layers", arrays, _activations(space), device), running)


def _activations(space: Space) -> tuple[str, str, str]:
    """Features that can be negative need an output that can."""
    return "relu", "relu", "linear" if space.signed else "relu"


class NmZsl(Baseline):
    """Memory: the network and its running moments."""

    name = "nm-zsl"

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(NmZslOptions, options, self.name)

    def _train(self, lesson: Lesson, memory: Snapshot, monitor: Monitor) -> Snapshot:
        o, rows = self.options, lesson.rows
        if memory.arrays:
            network = Prototyper.loaded(self.space, memory.arrays, self.device)
        else:
            network = Prototyper.started(self.space, o.hidden, self._rng(lesson.number, "network"), self.device)
        classes = torch.unique(rows.y)
        attributes, y = self._attributes(lesson.after)[classes], within(classes, rows.y)
        optimiser = adam(network.layers.parameters, o.learning_rate, o.weight_decay)
        steps = Steps(monitor, o.epochs * -(-len(rows) // o.batch))
        for epoch, batch in epochs(len(rows), o.batch, o.epochs, self._rng(lesson.number, "batches")):
            steps.begin()
            for group in optimiser.param_groups:
                group["lr"] = o.learning_rate * 0.1 ** (epoch // o.decay_every)
            loss = cosine_loss(rows.x[batch], y[batch], network(attributes, training=True), o.scale)
            descend(optimiser, loss)
            steps.end({"softmax": loss})
        return Snapshot(network.arrays(), {})

    def _publish(self, number: int, roster: Roster, memory: Snapshot) -> Generation:
        network = Prototyper.loaded(self.space, memory.arrays, self.device)
        with torch.no_grad():
            prototypes = network(self._attributes(roster))
        return prototypes_generation(number, roster, prototypes, self.options.seen_factor)

    def _attributes(self, roster: Roster) -> Tensor:
        """Of length sqrt(attributes)."""
        return math.sqrt(self.space.attributes) * super()._attributes(roster)
