"""G(z, c): features of a class drawn from its mean and the pooled covariance, met only in the directions asked for."""

from __future__ import annotations

import torch

from stream_cgzsl.learners.features import unit
from stream_cgzsl.learners.moments import Moments
from stream_cgzsl.learners.standard import Standard
from stream_cgzsl.learners.triangular import times_lower_transposed
from stream_cgzsl.learners.whitening import FLOOR, pooled_covariance

JITTER = 1e-8
"""Added to a covariance, in units of its mean variance, so that one of few rows has a Cholesky factor too."""

BATCHES = 12
"""Batches of noise that are made. They are used in turn, with their sign turned each time and for other classes."""


class Draws:
    """Draws of standardised features x as their products with fixed directions, so that x itself is never made.

    A draw is offsets_c + n with n ~ N(0, S) in the published space, scaled to the length that scorers scale it to.
    Products with standardised directions are then products with `out_of(directions)`.
    """

    def __init__(self, standard: Standard, directions: torch.Tensor, batch: int, generator: torch.Generator) -> None:
        """`directions` [k, features]; every `take` is of `batch` labels."""
        whitening = standard.whitening
        factor = _factor(whitening.covariance(), JITTER)
        z = torch.randn(BATCHES * batch, whitening.features, generator=generator).to(factor.device)
        published = whitening.out_of(directions).to(torch.float32)  # [k, features]
        self._batch = batch
        self._noise = times_lower_transposed(z, factor)  # [batches * batch, features]
        self._noise_squares = self._noise.square().sum(dim=1)
        self._noise_products = self._noise @ published.T  # [batches * batch, k]
        self._offsets = standard.offsets.to(torch.float32)  # [seen, features]
        self._offset_squares = self._offsets.square().sum(dim=1)
        self._offset_products = self._offsets @ published.T  # [seen, k]
        self._gain = whitening.gain

    def take(self, labels: torch.Tensor, turn: int) -> torch.Tensor:
        """[batch, k]: one draw of each label's class; batch number `turn`."""
        first = turn % BATCHES * self._batch
        sign = -1.0 if turn // BATCHES % 2 else 1.0
        noise = slice(first, first + self._batch)
        between = (self._offsets[labels] * self._noise[noise]).sum(dim=1)
        squares = self._offset_squares[labels] + 2 * sign * between + self._noise_squares[noise]
        products = self._offset_products[labels] + sign * self._noise_products[noise]  # [batch, k]
        return products * (self._gain * squares.clamp_min(1e-12).rsqrt())[:, None]


def drawn(moments: Moments, means: torch.Tensor, rows: int, generator: torch.Generator) -> torch.Tensor:
    """[classes, rows, features] float32: draws themselves, published features of length 1. `means` are of the classes."""
    covariance = pooled_covariance(moments, means.device)
    factor = _factor(covariance, JITTER * max(float(covariance.diagonal().mean()), FLOOR))
    z = torch.randn(len(means) * rows, means.shape[1], generator=generator).to(factor.device)
    return unit(means.to(torch.float32)[:, None] + times_lower_transposed(z, factor).view(len(means), rows, -1))


def _factor(covariance: torch.Tensor, jitter: float) -> torch.Tensor:
    """L with LL' = S, float32. Changes what it is given."""
    covariance.diagonal().add_(jitter)
    factor: torch.Tensor = torch.linalg.cholesky(covariance)
    return factor.to(torch.float32)
