"""G(z, c): features of a class drawn from its mean and the pooled covariance, met only in the few directions asked for."""

from __future__ import annotations

import torch

from stream_cgzsl.learners.standard import Standard

JITTER = 1e-9
"""Added to the covariance, whose mean variance is 1, so that one of few rows has a Cholesky factor too."""


class Draws:
    """Draws of standardised features x as their products with fixed directions, so that x itself is never made.

    A draw is offsets_c + n with n ~ N(0, S) in the published space, scaled to the length that scorers scale it to.
    Products with standardised directions are then products with `out_of(directions)`.
    """

    def __init__(self, standard: Standard, directions: torch.Tensor, pool: int, generator: torch.Generator) -> None:
        """`directions` [k, features]. A pool of noise is made at once; `take` pairs it with classes."""
        whitening = standard.whitening
        covariance = whitening.covariance()
        covariance.diagonal().add_(JITTER)
        factor = torch.linalg.cholesky(covariance).to(torch.float32)
        z = torch.randn(pool, whitening.features, generator=generator).to(factor.device)
        self._noise = z @ factor.T  # [pool, features]
        published = whitening.out_of(directions).to(torch.float32)
        self._noise_products = self._noise @ published.T  # [pool, k]
        self._offsets = standard.offsets.to(torch.float32)  # [seen, features]
        self._products = self._offsets @ published.T  # [seen, k]
        self._gain = whitening.gain

    def take(self, labels: torch.Tensor, first: int) -> torch.Tensor:
        """[labels, k]: one draw of each label's class, with the pool's noise from number `first` on.

        The pool is used again and again, with its sign turned each time.
        """
        number = torch.arange(first, first + len(labels), device=labels.device)
        position = number % len(self._noise)
        sign = 1.0 - 2.0 * ((number // len(self._noise)) % 2)[:, None]
        lengths = torch.linalg.vector_norm(self._offsets[labels] + sign * self._noise[position], dim=1)
        products = self._products[labels] + sign * self._noise_products[position]
        return products * (self._gain / lengths.clamp_min(1e-12))[:, None]
