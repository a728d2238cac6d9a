from __future__ import annotations

import torch
from torch.distributions import Normal, kl_divergence

from stream_cgzsl.learners.baselines.vae import divergence, dropped, sampled

RNG = torch.Generator().manual_seed(0)


def test_the_divergence_is_that_of_two_gaussians() -> None:
    mean, log_variance = torch.randn(5, 3, generator=RNG), torch.randn(5, 3, generator=RNG)
    own = Normal(mean, (0.5 * log_variance).exp())
    torch.testing.assert_close(divergence(mean, log_variance), kl_divergence(own, Normal(0.0, 1.0)).sum())


def test_samples_have_the_mean_and_the_variance() -> None:
    mean, log_variance = torch.tensor([1.0, -2.0]), torch.tensor([0.0, 1.0])
    drawn = sampled(mean.expand(40000, 2), log_variance.expand(40000, 2), RNG)
    torch.testing.assert_close(drawn.mean(0), mean, atol=0.05, rtol=0)
    torch.testing.assert_close(drawn.var(0), log_variance.exp(), atol=0.1, rtol=0)


def test_dropout_keeps_the_mean() -> None:
    h = dropped(torch.ones(200, 200), 0.7, RNG)
    assert abs(float((h == 0).float().mean()) - 0.7) < 0.02 and abs(float(h.mean()) - 1) < 0.05
    assert torch.equal(dropped(torch.ones(3, 3), 0.0, RNG), torch.ones(3, 3))
