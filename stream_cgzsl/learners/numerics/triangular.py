"""Products with, and the inverse of, a lower triangular matrix, by blocks: half the work of treating it as full."""

from __future__ import annotations

import numpy as np
import torch

from stream_cgzsl.schemas import Array

BLOCK = 512


def times_lower(x: torch.Tensor, lower: torch.Tensor) -> torch.Tensor:
    """x @ lower, [n, size]."""
    product = x.new_empty(x.shape)
    for start in range(0, len(lower), BLOCK):
        stop = start + BLOCK
        torch.mm(x[:, start:], lower[start:, start:stop], out=product[:, start:stop])
    return product


def times_lower_transposed(x: torch.Tensor, lower: torch.Tensor) -> torch.Tensor:
    """x @ lower.T, [n, size]."""
    product = x.new_empty(x.shape)
    for start in range(0, len(lower), BLOCK):
        stop = start + BLOCK
        torch.mm(x[:, :stop], lower[start:stop, :stop].T, out=product[:, start:stop])
    return product


def inverse_lower(lower: torch.Tensor) -> torch.Tensor:
    """The inverse, lower triangular again."""
    size = len(lower)
    if size <= BLOCK:
        identity = torch.eye(size, dtype=lower.dtype, device=lower.device)
        solved: torch.Tensor = torch.linalg.solve_triangular(lower, identity, upper=False)
        return solved
    half = size // 2
    inverse = torch.zeros_like(lower)
    inverse[:half, :half] = first = inverse_lower(lower[:half, :half])
    inverse[half:, half:] = inverse_lower(lower[half:, half:])
    inverse[half:, :half] = torch.linalg.solve_triangular(
        lower[half:, half:], lower[half:, :half] @ -first, upper=False
    )
    return inverse


def triangle(symmetric: Array) -> Array:
    """The upper triangle of a symmetric matrix, row by row."""
    return np.concatenate([symmetric[row, row:] for row in range(len(symmetric))] or [np.zeros(0)])


def mirrored(triangle: Array, size: int) -> Array:
    """[size, size]: the symmetric matrix with this upper triangle."""
    matrix = np.zeros((size, size))
    start = 0
    for row in range(size):
        matrix[row, row:] = matrix[row:, row] = triangle[start : start + size - row]
        start += size - row
    return matrix
