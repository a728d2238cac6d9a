"""Step 3, the standardised space: where features vary alike in every direction inside a class."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from stream_cgzsl.learners.moments import Moments
from stream_cgzsl.learners.triangular import inverse_lower, times_lower, times_lower_transposed

SHRINKAGE = 0.2
"""How soon the measured covariance is believed: its weight is a half once there are D / 0.2 rows of D features."""

FLOOR = 1e-12
"""Least mean variance of a feature: where rows do not vary at all, there is still a unit to measure in."""


@dataclass(frozen=True, eq=False)
class Whitening:
    """With S the pooled covariance at mean variance 1 and Sigma = (1 - alpha) S + alpha I: a root of Sigma's inverse.

    `root` has root' root = Sigma^-1. Any root gives the same lengths and angles, so the same scores: a Cholesky
    factor does for learners that work from those alone, the symmetric root for networks, whose coordinates should
    hardly move between windows.
    """

    moments: Moments
    root: torch.Tensor  # [features, features] float64
    alpha: float
    variance: float  # v0: the mean variance of a feature inside a class
    symmetric: bool  # the root is; otherwise it is lower triangular
    spread: float  # sum of S's variances after whitening: sum of sd^2

    @property
    def features(self) -> int:
        return len(self.root)

    @property
    def gain(self) -> float:
        """r0: what makes a whitened within-class deviation of unit length as long as the features are many."""
        return float((self.features / max(self.spread, 0.001 * self.features)) ** 0.5)

    def covariance(self) -> torch.Tensor:
        """S, [features, features] float64, made anew: it is wanted once and large."""
        return pooled_covariance(self.moments, self.root.device) / self.variance

    def into(self, rows: torch.Tensor) -> torch.Tensor:
        """[n, features] in the published feature space -> the standardised space."""
        return rows @ self.root.T if self.symmetric else times_lower_transposed(rows, self.root)

    def out_of(self, directions: torch.Tensor) -> torch.Tensor:
        """Weights on standardised coordinates -> the same weights on published features."""
        return directions @ self.root if self.symmetric else times_lower(directions, self.root)


def whiten(
    moments: Moments, device: torch.device | str = "cpu", symmetric: bool = False, enabled: bool = True
) -> Whitening:
    """The whitening of some moments. Not `enabled`: the space is only scaled, for comparison."""
    features = len(moments.scatter)
    sigma = pooled_covariance(moments, device)
    variance = max(float(sigma.diagonal().mean()), FLOOR)
    if not enabled:
        root = torch.eye(features, dtype=torch.float64, device=device)
        return Whitening(moments, root, 1.0, variance, True, float(sigma.diagonal().sum()) / variance)
    alpha = 1 / (1 + SHRINKAGE * moments.rows / features)
    sigma *= (1 - alpha) / variance
    sigma.diagonal().add_(alpha)
    if symmetric:
        values, vectors = torch.linalg.eigh(sigma)
        root = (vectors / values.clamp_min(alpha).sqrt()) @ vectors.T
    else:
        root = inverse_lower(torch.linalg.cholesky(sigma))
    # trace(Sigma^-1 S), with S = (Sigma - alpha I) / (1 - alpha); alpha is 1 only when there are no rows at all
    spread = (features - alpha * float(root.square().sum())) / (1 - alpha) if alpha < 1 else 0.0
    return Whitening(moments, root, alpha, variance, symmetric, max(spread, 0.0))


def pooled_covariance(moments: Moments, device: torch.device | str) -> torch.Tensor:
    """[features, features] float64, made anew."""
    return torch.from_numpy(moments.scatter).to(device) / max(moments.freedom, 1)
