"""The published feature transform, on the learner's side: what scorers do to a sample, done to training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Array = npt.NDArray[Any]

ROWS_AT_ONCE = 2048
"""Rows worked on at a time, so that a window costs little more memory than its kept rows."""


def transform_of(signed: bool) -> str:
    """The name a generation publishes for it."""
    return "none" if signed else "sqrt"


def unit(x: torch.Tensor) -> torch.Tensor:
    """Rows at length 1; a row of zeros stays one."""
    lengths: torch.Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / lengths.clamp_min(1e-12)


def transformed(rows: Array, transform: str, device: torch.device | str = "cpu") -> torch.Tensor:
    """[rows, features] of any float type -> float64 rows of length 1, square roots first if the transform says so."""
    x = torch.from_numpy(np.array(rows, dtype=np.float32, ndmin=2)).to(device)
    if transform == "sqrt":
        x = x.clamp_min_(0).sqrt_()
    return unit(x.to(torch.float64))
