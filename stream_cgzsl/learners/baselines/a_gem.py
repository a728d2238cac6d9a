"""A-GEM: Chaudhry et al., "Efficient Lifelong Learning with A-GEM", ICLR 2019.

A batch's gradient that would raise the loss on stored exemplars is projected onto the plane where it does not. It keeps
exemplars: `memory` rows a class (the authors' 10 for CUB, 25 for AWA, 5 for SUN).

Doubtful: the one widely used implementation is marked by its maintainers as not verified against the paper. Here an
exemplar's softmax is over the classes that were last learned in the same window as its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.learners.baselines.learner import Lesson
from stream_cgzsl.learners.baselines.networks import Layers
from stream_cgzsl.learners.baselines.reservoir import Reservoir, forget
from stream_cgzsl.learners.baselines.rows import within
from stream_cgzsl.learners.baselines.sequential import Correction, Sequential, SequentialOptions
from stream_cgzsl.learners.interface import Keeps, Monitor, Snapshot, Space
from stream_cgzsl.learners.options import parse_options


@dataclass(frozen=True)
class AGemOptions(SequentialOptions):
    memory: int = 10
    memory_batch: int = 128


def projected(gradients: Sequence[Tensor], reference: Sequence[Tensor]) -> list[Tensor]:
    """g - (g.r / r.r) r where g.r < 0, and g where it is not."""
    product = torch.stack([(g * r).sum() for g, r in zip(gradients, reference, strict=True)]).sum()
    if product >= 0:
        return list(gradients)
    square = torch.stack([r.square().sum() for r in reference]).sum()
    return [g - product / square * r for g, r in zip(gradients, reference, strict=True)]


def masked_cosine_loss(x: Tensor, y: Tensor, prototypes: Tensor, allowed: Tensor, scale: float) -> Tensor:
    """Softmax cross-entropy of cosines over a row's allowed classes. allowed: [rows, classes] bool"""
    logits = scale * (F.normalize(x) @ F.normalize(prototypes).T)
    return F.cross_entropy(logits.masked_fill(~allowed, -torch.inf), y)


class AGem(Sequential):
    """Memory: the network, and the exemplars."""

    name = "a-gem"
    keeps: ClassVar[Keeps] = "exemplars"
    options: AGemOptions

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(AGemOptions, options, self.name)

    def _correction(self, lesson: Lesson, layers: Layers, memory: Snapshot) -> Correction:
        reservoir = Reservoir.restore(self.options.memory, memory)
        ids, o = lesson.after.class_ids, self.options
        rows = reservoir.labelled(ids, self.space.features, self.device)
        if not len(rows):
            return lambda parameters, gradients: gradients  # noqa: ARG005
        tasks = torch.tensor([reservoir.tasks.get(class_id, 0) for class_id in ids], device=self.device)
        classes = (tasks > 0).nonzero()[:, 0]
        y, task = within(classes, rows.y), tasks[rows.y]
        attributes, task_of = self._attributes(lesson.after)[classes], tasks[classes]
        rng = self._rng(lesson.number, "memory")

        def correct(parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> Sequence[Tensor]:
            chosen = torch.randperm(len(rows), generator=rng)[: o.memory_batch]
            allowed = task[chosen][:, None] == task_of
            loss = masked_cosine_loss(rows.x[chosen], y[chosen], layers(attributes), allowed, o.scale)
            return projected(gradients, torch.autograd.grad(loss, list(parameters)))

        return correct

    def _remember(self, lesson: Lesson, layers: Layers, memory: Snapshot, monitor: Monitor) -> Snapshot:  # noqa: ARG002
        reservoir = Reservoir.restore(self.options.memory, memory)
        reservoir = reservoir.after(lesson.number, lesson.examples, self._rng(lesson.number, "reservoir"))
        return Snapshot(reservoir.arrays(), {"tasks": reservoir.meta()})

    def _forget(self, memory: Snapshot, retired: Collection[str]) -> Snapshot:
        return forget(memory, retired)
