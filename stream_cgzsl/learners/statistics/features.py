"""The published feature transform on the learner's side: what scorers do to a sample, done to training rows."""

from __future__ import annotations

import numpy as np
import torch

from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.cuda import unit

BLOCK_ROWS = 2048
"""Rows worked on at a time, so that a window costs little more memory than its kept rows."""


def transform_of(signed: bool) -> str:
    """The name under which a generation publishes the transform."""
    return "none" if signed else "sqrt"


def transformed(rows: Array, transform: str, device: torch.device | str = "cpu") -> torch.Tensor:
    """[rows, features] of any float type -> float64 rows of length 1, after the square root if there is one."""
    x = torch.from_numpy(np.array(rows, dtype=np.float32, ndmin=2)).to(device)
    if transform == "sqrt":
        x = x.clamp_min_(0).sqrt_()
    return unit(x.to(torch.float64))
