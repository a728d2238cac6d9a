"""EWC: Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks", PNAS 2017.

In its online form (Schwarz et al., "Progress & Compress", ICML 2018): one Fisher information, which decays. Weights
that mattered for earlier windows are pulled back to where the last window left them. It keeps no example: the network
and the diagonal Fisher information.

Doubtful: the one widely used online implementation is marked by its maintainers as not verified against the paper, and
the paper does not say which it used. Scaling the Fisher information to [0, 1] is that implementation's habit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stream_cgzsl.learners.baselines.learner import Lesson
from stream_cgzsl.learners.baselines.networks import Layers
from stream_cgzsl.learners.baselines.prototypes import cosine_loss
from stream_cgzsl.learners.baselines.rows import Rows, within
from stream_cgzsl.learners.baselines.sequential import Correction, Sequential, SequentialOptions, loaded, named
from stream_cgzsl.learners.interface import Monitor, Snapshot, Space
from stream_cgzsl.learners.options import parse_options


@dataclass(frozen=True)
class EwcOptions(SequentialOptions):
    """`fisher_rows` bounds the rows of a window that the Fisher information is measured on."""

    penalty: float = 10.0
    decay: float = 0.99
    fisher_rows: int = 1000


def fisher(layers: Layers, attributes: Tensor, rows: Rows, scale: float, check: Callable[[], None]) -> Sequence[Tensor]:
    """The mean over rows of the squared gradient of -log p(y | x): like the parameters.

    attributes: [classes, attributes]; rows have classes by place among these
    """
    total = [torch.zeros_like(parameter) for parameter in layers.parameters]
    for x, y in zip(rows.x, rows.y, strict=True):
        check()
        loss = cosine_loss(x[None], y[None], layers(attributes), scale)
        for summed, gradient in zip(total, torch.autograd.grad(loss, layers.parameters), strict=True):
            summed.addcmul_(gradient, gradient)
    return [summed / max(len(rows), 1) for summed in total]


def scaled_to_one(importance: Sequence[Tensor]) -> list[Tensor]:
    """All numbers together from [least, most] to [0, 1]; zeros where they are equal."""
    least = torch.stack([part.min() for part in importance]).min()
    span = torch.stack([part.max() for part in importance]).max() - least
    return [(part - least) / span if span > 0 else torch.zeros_like(part) for part in importance]


def penalty(parameters: Sequence[Tensor], anchors: Sequence[Tensor], importance: Sequence[Tensor]) -> Tensor:
    """sum F (w - w*)^2"""
    parts = [(f * (w - a).square()).sum() for w, a, f in zip(parameters, anchors, importance, strict=True)]
    return torch.stack(parts).sum()


def penalty_gradient(w: Tensor, anchor: Tensor, importance: Tensor) -> Tensor:
    """2 F (w - w*)"""
    return 2 * importance * (w - anchor)


class Ewc(Sequential):
    """Memory: the network, and the Fisher information."""

    name = "ewc"
    options: EwcOptions

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(EwcOptions, options, self.name)

    def _correction(self, lesson: Lesson, layers: Layers, memory: Snapshot) -> Correction:  # noqa: ARG002
        known = self._fisher(memory, layers)
        if known is None:
            return lambda parameters, gradients: gradients  # noqa: ARG005
        importance = scaled_to_one(known)
        anchors = [parameter.detach().clone() for parameter in layers.parameters]

        def correct(parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> Sequence[Tensor]:
            with torch.no_grad():
                return [
                    g + self.options.penalty * penalty_gradient(w, a, f)
                    for w, g, a, f in zip(parameters, gradients, anchors, importance, strict=True)
                ]

        return correct

    def _remember(self, lesson: Lesson, layers: Layers, memory: Snapshot, monitor: Monitor) -> Snapshot:
        chosen = torch.randperm(len(lesson.rows), generator=self._rng(lesson.number, "fisher"))
        rows = lesson.rows[chosen[: self.options.fisher_rows]]
        classes = torch.unique(lesson.rows.y)
        attributes = self._attributes(lesson.after)[classes]
        found = fisher(layers, attributes, Rows(rows.x, within(classes, rows.y)), self.options.scale, monitor.check)
        known = self._fisher(memory, layers)
        if known is not None:
            found = [self.options.decay * old + new for old, new in zip(known, found, strict=True)]
        return Snapshot(named("fisher", found), {})

    def _fisher(self, memory: Snapshot, layers: Layers) -> list[Tensor] | None:
        return loaded("fisher", memory.arrays, len(layers.parameters), self.device)
