"""The two networks: G generates features of a class, D projects its attributes into feature space."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

OUTPUTS = ("linear", "relu", "sigmoid")


class TwoLayers(nn.Module):
    """y = gain * output(W2 relu(W1 x + b1) + b2): Xavier-normal weights from `rng` (on the CPU), zero biases."""

    def __init__(
        self, inputs: int, hidden: int, outputs: int, output: str, rng: torch.Generator, gain: float = 1.0
    ) -> None:
        super().__init__()
        if output not in OUTPUTS:
            raise ValueError(f"unknown output {output!r}; use one of {', '.join(OUTPUTS)}")
        self.output = output
        self.gain = gain
        self.w1 = nn.Parameter(xavier_normal(hidden, inputs, rng))
        self.b1 = nn.Parameter(torch.zeros(hidden))
        self.w2 = nn.Parameter(xavier_normal(outputs, hidden, rng))
        self.b2 = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = F.linear(F.relu(F.linear(x, self.w1, self.b1)), self.w2, self.b2)  # [rows, outputs]
        if self.output == "sigmoid":
            y = torch.sigmoid(y)
        elif self.output == "relu":
            y = F.relu(y)
        return y if self.gain == 1.0 else self.gain * y

    def blend(self, other: TwoLayers, share: float) -> None:
        """Becomes `share` of itself and 1 - share of `other`."""
        with torch.no_grad():
            for mine, theirs in zip(self.parameters(), other.parameters(), strict=True):
                mine.lerp_(theirs, 1 - share)

    def arrays(self, prefix: str) -> dict[str, npt.NDArray[np.float32]]:
        """Copies of the parameters, by name."""
        return {f"{prefix}.{name}": p.detach().cpu().numpy().copy() for name, p in self.named_parameters()}

    def load(self, prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Takes the parameters that `arrays` gave. Raises `ValueError` when one is missing or of another shape."""
        for name, p in self.named_parameters():
            array = arrays.get(f"{prefix}.{name}")
            if array is None or array.shape != p.shape:
                found = "nothing" if array is None else f"shape {array.shape}"
                raise ValueError(f"the snapshot has {found} for {prefix}.{name}, which needs shape {tuple(p.shape)}")
            with torch.no_grad():
                p.copy_(torch.tensor(array, dtype=p.dtype))


class Generator(TwoLayers):
    """G(z, a) -> x', with z ~ N(0, I) of the attributes' size."""

    def __init__(
        self, attributes: int, hidden: int, features: int, output: str, rng: torch.Generator, gain: float = 1.0
    ) -> None:
        super().__init__(2 * attributes, hidden, features, output, rng, gain)

    def generate(self, z: Tensor, a: Tensor) -> Tensor:
        """z: [rows, attributes], a: [rows, attributes] -> [rows, features]"""
        y: Tensor = self(torch.cat((z, a), dim=1))
        return y


class Projector(TwoLayers):
    """D(a) -> S, the identifier projection of a class: [classes, attributes] -> [classes, features]."""


def xavier_normal(outputs: int, inputs: int, rng: torch.Generator) -> Tensor:
    """[outputs, inputs] drawn from N(0, 2 / (inputs + outputs))."""
    return torch.randn(outputs, inputs, generator=rng) * math.sqrt(2 / (inputs + outputs))


def noise(rows: int, attributes: Tensor, rng: torch.Generator) -> Tensor:
    """z ~ N(0, I) of the attributes' size, drawn on the CPU whatever the device: [rows, attributes]."""
    return torch.randn(rows, attributes.shape[1], generator=rng).to(attributes.device)
