"""Dense layers as plain tensors: initialised from a generator on the CPU, kept in snapshots by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.schemas import Array

Start = Callable[[int, int, torch.Generator], tuple[Tensor, Tensor]]
"""(outputs, inputs, rng) -> weights [outputs, inputs] and bias [outputs]"""


def usual(outputs: int, inputs: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """U(-1/sqrt(inputs), 1/sqrt(inputs)) for both, as torch starts a layer whose author says nothing."""
    bound = 1 / math.sqrt(inputs)
    return uniform((outputs, inputs), bound, rng), uniform((outputs,), bound, rng)


def xavier(gain: float) -> Start:
    """Xavier-uniform weights, no bias."""

    def start(outputs: int, inputs: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        bound = gain * math.sqrt(6 / (inputs + outputs))
        return uniform((outputs, inputs), bound, rng), torch.zeros(outputs)

    return start


def normal(deviation: float) -> Start:
    """N(0, deviation^2) weights, no bias."""

    def start(outputs: int, inputs: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        return torch.randn(outputs, inputs, generator=rng) * deviation, torch.zeros(outputs)

    return start


def uniform(shape: Sequence[int], bound: float, rng: torch.Generator) -> Tensor:
    return (torch.rand(*shape, generator=rng) * 2 - 1) * bound


ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda x: x,
    "relu": F.relu,
    "leaky-relu": lambda x: F.leaky_relu(x, 0.2),
}


@dataclass(frozen=True, eq=False)
class Layers:
    """y = a_n(W_n ... a_1(W_1 x + b_1) ... + b_n). The tensors may be trained in place."""

    weights: tuple[tuple[Tensor, Tensor], ...]
    activations: tuple[str, ...]

    @classmethod
    def started(
        cls, sizes: Sequence[int], activations: Sequence[str], rng: torch.Generator, device: torch.device, start: Start
    ) -> Layers:
        """sizes: of the input and of each layer's output"""
        made = [start(outputs, inputs, rng) for inputs, outputs in pairwise(sizes)]
        return cls(tuple((w.to(device), b.to(device)) for w, b in made), tuple(activations))

    def __call__(self, x: Tensor) -> Tensor:
        for (w, b), activation in zip(self.weights, self.activations, strict=True):
            x = ACTIVATIONS[activation](F.linear(x, w, b))
        return x

    @property
    def parameters(self) -> list[Tensor]:
        return [tensor for pair in self.weights for tensor in pair]

    def arrays(self, name: str) -> dict[str, Array]:
        """Copies of the parameters, by name."""
        return {
            f"{name}.{part}{number}": to_array(tensor)
            for number, pair in enumerate(self.weights)
            for part, tensor in zip("wb", pair, strict=True)
        }

    @classmethod
    def loaded(cls, name: str, arrays: Mapping[str, Array], activations: Sequence[str], device: torch.device) -> Layers:
        """Copies of what `arrays` gave."""
        pairs = []
        for number in range(len(activations)):
            w, b = (to_tensor(arrays[f"{name}.{part}{number}"], device) for part in "wb")
            pairs.append((w, b))
        return cls(tuple(pairs), tuple(activations))


def to_array(tensor: Tensor) -> Array:
    return tensor.detach().cpu().numpy().copy()


def to_tensor(array: Array, device: torch.device) -> Tensor:
    """A copy."""
    return torch.from_numpy(np.array(array)).to(device)


def adam(
    parameters: Iterable[Tensor],
    rate: float,
    weight_decay: float = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
    amsgrad: bool = False,
) -> torch.optim.Adam:
    """Adam in one pass over the parameters, which then ask for gradients."""
    asked = [parameter.requires_grad_() for parameter in parameters]
    return torch.optim.Adam(asked, lr=rate, betas=betas, weight_decay=weight_decay, amsgrad=amsgrad, fused=True)


def descend(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step down the gradient of `loss`."""
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
