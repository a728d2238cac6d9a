"""What is believed of the landmarks' weights w after all observations: the Gaussian process, as a linear regression."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from stream_cgzsl.learners.kernel.frame import Observations

FOLDED = 512
"""Rows that are folded in at a time."""


@dataclass(frozen=True, eq=False)
class Belief:
    """w ~ N(mean, variance), the same variance for every feature; float64. An immutable value."""

    mean: torch.Tensor  # w [landmarks, features]
    variance: torch.Tensor  # V [landmarks, landmarks]

    def __post_init__(self) -> None:
        """In one layout, because products differ by rounding between layouts."""
        object.__setattr__(self, "mean", self.mean.contiguous())
        object.__setattr__(self, "variance", self.variance.contiguous())

    @classmethod
    def of(cls, observations: Iterable[Observations], landmarks: int, centre: torch.Tensor) -> Belief:
        """From nothing: V = (I + sum of phi phi' precision)^-1, w = V sum of phi t precision."""
        matrix = torch.eye(landmarks, dtype=centre.dtype, device=centre.device)
        right = centre.new_zeros(landmarks, len(centre))
        for seen in observations:
            weighed = seen.phi * seen.precision[:, None]
            matrix.addmm_(weighed.T, seen.phi)
            right.addmm_(weighed.T, seen.targets)
        factor = torch.linalg.cholesky(matrix)
        return cls(torch.cholesky_solve(right, factor), torch.cholesky_inverse(factor))

    def folded(self, phi: torch.Tensor, precision: torch.Tensor, pull: torch.Tensor) -> Belief:
        """After these changes of precision, and of precision times target (`pull`), of classes at phi."""
        mean, variance = self.mean, self.variance
        for start in range(0, len(phi), FOLDED):
            part = slice(start, start + FOLDED)
            rows, change = phi[part], precision[part, None]
            spread = variance @ rows.T  # U [landmarks, rows]
            system = change * (rows @ spread)
            system.diagonal().add_(1)
            gain = torch.linalg.solve(system, change * spread.T)
            pulled = pull[part] - change * (rows @ mean)
            mean = mean + (spread - spread @ (gain @ rows.T)) @ pulled  # V phi' with the new V
            variance = torch.addmm(variance, spread, gain, alpha=-1)
        return Belief(mean, variance)

    def posterior(self, seen: Observations) -> tuple[torch.Tensor, torch.Tensor]:
        """P [classes, features], and f [classes]: how far a class's own examples decide, 0 without any."""
        predicted = seen.phi @ self.mean
        own = seen.delta * seen.precision
        spread = ((seen.phi @ self.variance) * seen.phi).sum(dim=1)
        projections = seen.expected + predicted + own[:, None] * (seen.targets - predicted)
        return projections, own + (1 - own) * spread * seen.precision

    def finite(self) -> bool:
        return bool(torch.isfinite(self.mean.sum() + self.variance.sum()))
