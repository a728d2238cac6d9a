"""G(z, c): features of a class drawn from its mean and the pooled covariance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from stream_cgzsl.learners.numerics.randomness import generator
from stream_cgzsl.learners.numerics.triangular import times_lower_transposed
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.learner import require_learned
from stream_cgzsl.learners.whitened.space import WhitenedSpace
from stream_cgzsl.learners.whitened.whitening import FLOOR, pooled_covariance
from stream_cgzsl.serving.cuda import unit

JITTER = 1e-8
"""Added to a covariance, in units of its mean variance, so that one of few rows has a Cholesky factor too."""

BATCHES = 12
"""Batches of noise that are drawn. They are used in turn, with alternating sign and for other classes."""


class GaussianReplay:
    """Replayed whitened features x, only as their products with fixed directions: x itself is never computed.

    A feature is offsets_c + n with n ~ N(0, S) in the published space, scaled to the length that scorers scale it to.
    Products with whitened directions are then products with `out_of(directions)`.
    """

    def __init__(self, space: WhitenedSpace, directions: torch.Tensor, batch: int, rng: torch.Generator) -> None:
        """`directions` [k, features]; every `take` is of `batch` labels."""
        whitening = space.whitening
        factor = covariance_factor(whitening.covariance(), JITTER)
        z = torch.randn(BATCHES * batch, whitening.features, generator=rng).to(factor.device)
        published = whitening.out_of(directions).to(torch.float32)  # [k, features]
        self._batch = batch
        self._noise = times_lower_transposed(z, factor)  # [batches * batch, features]
        self._noise_squares = self._noise.square().sum(dim=1)
        self._noise_products = self._noise @ published.T  # [batches * batch, k]
        self._offsets = space.offsets.to(torch.float32)  # [seen, features]
        self._offset_squares = self._offsets.square().sum(dim=1)
        self._offset_products = self._offsets @ published.T  # [seen, k]
        self._gain = whitening.gain

    def take(self, labels: torch.Tensor, turn: int) -> torch.Tensor:
        """[batch, k]: one feature of each label's class, for batch number `turn`."""
        first = turn % BATCHES * self._batch
        sign = -1.0 if turn // BATCHES % 2 else 1.0
        noise = slice(first, first + self._batch)
        between = (self._offsets[labels] * self._noise[noise]).sum(dim=1)
        squares = self._offset_squares[labels] + 2 * sign * between + self._noise_squares[noise]
        products = self._offset_products[labels] + sign * self._noise_products[noise]  # [batch, k]
        return products * (self._gain * squares.clamp_min(1e-12).rsqrt())[:, None]


def gaussian_features(
    statistics: ClassStatistics, class_ids: Sequence[str], rows: int, device: torch.device
) -> npt.NDArray[np.float32]:
    """Replayed features of learned classes, see `Learner.generate`: [classes, rows, features]."""
    require_learned(statistics, class_ids)
    moments = statistics.moments
    means = torch.from_numpy(np.stack([moments.means[class_id] for class_id in class_ids])).to(device)
    covariance = pooled_covariance(moments, device)
    factor = covariance_factor(covariance, JITTER * max(float(covariance.diagonal().mean()), FLOOR))
    rng = generator(statistics.space.seed, 0, "generate")
    z = torch.randn(len(means) * rows, means.shape[1], generator=rng).to(device)
    x = means.to(torch.float32)[:, None] + times_lower_transposed(z, factor).view(len(means), rows, -1)
    return unit(x).cpu().numpy()


def covariance_factor(covariance: torch.Tensor, jitter: float) -> torch.Tensor:
    """L with LL' = S, float32. Overwrites its argument."""
    covariance.diagonal().add_(jitter)
    factor: torch.Tensor = torch.linalg.cholesky(covariance)
    return factor.to(torch.float32)
