"""Adam for a handful of small tensors. torch's own takes seconds to import, longer than a window takes to train."""

from __future__ import annotations

from collections.abc import Sequence

import torch

MOMENTUM = 0.9
MEMORY = 0.999
EPSILON = 1e-8


class Adam:
    """Makes the given tensors parameters and moves them in place."""

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self._parameters = [parameter.requires_grad_() for parameter in parameters]
        self._first = [torch.zeros_like(parameter) for parameter in parameters]
        self._second = [torch.zeros_like(parameter) for parameter in parameters]
        self._steps = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[torch.Tensor], rate: float) -> None:
        self._steps += 1
        bias, bias2 = 1 - MOMENTUM**self._steps, 1 - MEMORY**self._steps
        for value, gradient, first, second in zip(self._parameters, gradients, self._first, self._second, strict=True):
            first.lerp_(gradient, 1 - MOMENTUM)
            second.mul_(MEMORY).addcmul_(gradient, gradient, value=1 - MEMORY)
            value.addcdiv_(first, (second / bias2).sqrt_().add_(EPSILON), value=-rate / bias)
