"""Step 3, whitening: a linear map after which features vary alike in every direction inside a class."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from stream_cgzsl.learners.numerics.triangular import inverse_lower, times_lower, times_lower_transposed
from stream_cgzsl.learners.statistics.moments import Moments

SHRINKAGE = 0.2
"""How soon the measured covariance is trusted: its weight is a half once there are D / 0.2 rows of D features."""

FLOOR = 1e-12
"""Least mean variance of a feature, so that there is a unit even where rows do not vary at all."""


@dataclass(frozen=True, eq=False)
class Whitening:
    """With S the pooled covariance at mean variance 1 and Sigma = (1 - alpha) S + alpha I: a root of Sigma's inverse.

    `root` has root' root = Sigma^-1. Any root gives the same lengths and angles, so the same scores. A Cholesky factor
    is enough for learners that use only those; networks take the symmetric root, whose coordinates hardly move between
    windows.
    """

    moments: Moments
    root: torch.Tensor  # [features, features] float64
    alpha: float
    variance: float  # v0: the mean variance of a feature inside a class
    symmetric: bool  # the root is; otherwise it is lower triangular
    spread: float  # sum of S's variances after whitening: sum of sd^2
    prior: float | None = None  # variance of one prior degree of freedom that S includes, if any

    @property
    def features(self) -> int:
        return len(self.root)

    @property
    def gain(self) -> float:
        """r0: scales whitened within-class deviations to a mean squared length of the number of features."""
        return float((self.features / max(self.spread, 0.001 * self.features)) ** 0.5)

    def covariance(self) -> torch.Tensor:
        """S, [features, features] float64; computed on demand because it is large and needed once."""
        return pooled_covariance(self.moments, self.root.device, self.prior) / self.variance

    def into(self, rows: torch.Tensor, root: torch.Tensor | None = None) -> torch.Tensor:
        """[n, features] in the published feature space -> the whitened space; `root` may be of another precision."""
        root = self.root if root is None else root
        return rows @ root.T if self.symmetric else times_lower_transposed(rows, root)

    def out_of(self, directions: torch.Tensor, root: torch.Tensor | None = None) -> torch.Tensor:
        """Weights on whitened coordinates -> the same weights on published features."""
        root = self.root if root is None else root
        return directions @ root if self.symmetric else times_lower(directions, root)


def whiten(
    moments: Moments,
    device: torch.device | str = "cpu",
    symmetric: bool = False,
    enabled: bool = True,
    prior: float | None = None,
) -> Whitening:
    """The whitening of some moments. Not `enabled`: the space is only scaled, for comparison.

    With `prior`, the covariance has one more degree of freedom with that variance in every direction, so that it exists
    even when every class has one example.
    """
    features = len(moments.scatter)
    sigma = pooled_covariance(moments, device, prior)
    variance = max(float(sigma.diagonal().mean()), FLOOR)
    if not enabled:
        root = torch.eye(features, dtype=torch.float64, device=device)
        return Whitening(moments, root, 1.0, variance, True, float(sigma.diagonal().sum()) / variance, prior)
    alpha = 1 / (1 + SHRINKAGE * (moments.rows if prior is None else moments.freedom) / features)
    if prior is not None and alpha == 1:  # no freedom: nothing was measured but the prior
        root = torch.eye(features, dtype=torch.float64, device=device)
        return Whitening(moments, root, 1.0, variance, True, float(sigma.diagonal().sum()) / variance, prior)
    sigma *= (1 - alpha) / variance
    sigma.diagonal().add_(alpha)
    if symmetric:
        values, vectors = torch.linalg.eigh(sigma)
        root = (vectors / values.clamp_min(alpha).sqrt()) @ vectors.T
    else:
        root = inverse_lower(torch.linalg.cholesky(sigma))
    # trace(Sigma^-1 S), with S = (Sigma - alpha I) / (1 - alpha); alpha is 1 only when there are no rows at all
    spread = (features - alpha * float(root.square().sum())) / (1 - alpha) if alpha < 1 else 0.0
    return Whitening(moments, root, alpha, variance, symmetric, max(spread, 0.0), prior)


def pooled_covariance(moments: Moments, device: torch.device | str, prior: float | None = None) -> torch.Tensor:
    """[features, features] float64, a new tensor; with one degree of freedom of variance `prior`, if given."""
    scatter = torch.from_numpy(moments.scatter).to(device)
    if prior is None:
        return scatter / max(moments.freedom, 1)
    covariance = scatter / (moments.freedom + 1)
    covariance.diagonal().add_(prior / (moments.freedom + 1))
    return covariance
