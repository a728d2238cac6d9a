"""What EWC and A-GEM share: the paper's D, attributes to one projection a class, trained on one window after the other.

Both were made for classifiers with one output a class and have no unseen classes; on D they have. A window's softmax is
over its own classes. Network, optimiser and epochs are those the paper prints for D.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners.baselines.learner import Baseline, Lesson, Steps
from stream_cgzsl.learners.baselines.networks import Layers, adam, usual
from stream_cgzsl.learners.baselines.prototypes import cosine_loss, prototypes_generation
from stream_cgzsl.learners.baselines.roster import Roster
from stream_cgzsl.learners.baselines.rows import epochs, within
from stream_cgzsl.learners.interface import Monitor, Snapshot
from stream_cgzsl.serving.generation import Generation

ACTIVATIONS = ("relu", "linear")


@dataclass(frozen=True)
class SequentialOptions:
    hidden: int = 1024
    learning_rate: float = 0.005
    weight_decay: float = 1e-5
    epochs: int = 50
    batch: int = 64
    scale: float = 10.0

    def __post_init__(self) -> None:
        for name in ("hidden", "epochs", "batch"):
            if getattr(self, name) < 1:
                raise UsageError(f"option {name!r} must be at least 1, not {getattr(self, name)}")


class Correction(Protocol):
    """What a system does to the gradient of a batch against forgetting."""

    def __call__(self, parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> Sequence[Tensor]: ...


class Sequential(Baseline):
    """Memory: the network, and what the subclass adds."""

    options: SequentialOptions

    @abstractmethod
    def _correction(self, lesson: Lesson, layers: Layers, memory: Snapshot) -> Correction: ...

    @abstractmethod
    def _remember(self, lesson: Lesson, layers: Layers, memory: Snapshot, monitor: Monitor) -> Snapshot:
        """What is kept besides the network, which is now trained."""

    def _train(self, lesson: Lesson, memory: Snapshot, monitor: Monitor) -> Snapshot:
        o, rows = self.options, lesson.rows
        layers = self._layers(memory) or Layers.started(
            (self.space.attributes, o.hidden, self.space.features),
            ACTIVATIONS,
            self._rng(lesson.number, "network"),
            self.device,
            usual,
        )
        classes = torch.unique(rows.y)
        attributes, y = self._attributes(lesson.after)[classes], within(classes, rows.y)
        optimiser = adam(layers.parameters, o.learning_rate, o.weight_decay)
        correct = self._correction(lesson, layers, memory)
        steps = Steps(monitor, o.epochs * -(-len(rows) // o.batch))
        for _, batch in epochs(len(rows), o.batch, o.epochs, self._rng(lesson.number, "batches")):
            steps.begin()
            loss = cosine_loss(rows.x[batch], y[batch], layers(attributes), o.scale)
            gradients = correct(layers.parameters, torch.autograd.grad(loss, layers.parameters))
            for parameter, gradient in zip(layers.parameters, gradients, strict=True):
                parameter.grad = gradient
            optimiser.step()
            steps.end({"softmax": loss})
        kept = self._remember(lesson, layers, memory, monitor)
        return Snapshot({**layers.arrays("layers"), **kept.arrays}, kept.meta)

    def _layers(self, memory: Snapshot) -> Layers | None:
        """A copy; None before the first window with examples."""
        if "layers.w0" not in memory.arrays:
            return None
        return Layers.loaded("layers", memory.arrays, ACTIVATIONS, self.device)

    def _publish(self, number: int, roster: Roster, memory: Snapshot) -> Generation:
        layers = self._layers(memory)
        assert layers is not None, "a class is seen only after a window was trained"
        with torch.no_grad():
            projections = layers(self._attributes(roster))
        return prototypes_generation(number, roster, projections)


def named(prefix: str, tensors: Sequence[Tensor]) -> dict[str, Any]:
    return {f"{prefix}{number}": tensor.detach().cpu().numpy().copy() for number, tensor in enumerate(tensors)}


def loaded(prefix: str, arrays: Mapping[str, Any], count: int, device: torch.device) -> list[Tensor] | None:
    """None where there are none."""
    if f"{prefix}0" not in arrays:
        return None
    return [torch.from_numpy(arrays[f"{prefix}{number}"].copy()).to(device) for number in range(count)]
