"""What variational autoencoders share."""

from __future__ import annotations

import torch
from torch import Tensor


def sampled(mean: Tensor, log_variance: Tensor, rng: torch.Generator) -> Tensor:
    """mean + exp(log_variance / 2) z, with z ~ N(0, I) drawn on the CPU: [rows, latent]"""
    z = torch.randn(mean.shape, generator=rng).to(mean.device)
    return mean + (0.5 * log_variance).exp() * z


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(N(mean, variance) || N(0, I)), summed over the latent numbers and the rows."""
    return 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum()


def dropped(h: Tensor, share: float, rng: torch.Generator) -> Tensor:
    """h with this share of its numbers at random 0 and the others scaled up; drawn on the CPU."""
    kept = (torch.rand(h.shape, generator=rng) >= share).to(h.device)
    return h * kept / (1 - share)
