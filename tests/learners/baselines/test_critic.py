from __future__ import annotations

import torch

from stream_cgzsl.learners.baselines.critic import Critic, gradients

RNG = torch.Generator().manual_seed(0)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=RNG, dtype=torch.float64)


def test_gradients_are_those_of_the_loss_with_its_penalty() -> None:
    critic = Critic(drawn(9, 5), drawn(9, 3), drawn(9), drawn(9), drawn(1))
    for part in critic:
        part.requires_grad_()
    real, made, a, share = drawn(7, 5), drawn(7, 5), drawn(7, 3), drawn(7, 1).sigmoid()

    between = (share * real + (1 - share) * made).requires_grad_()
    (g,) = torch.autograd.grad(critic(between, a).sum(), between, create_graph=True)
    penalty = (g.norm(dim=1) - 1).square().mean()
    distance = critic(real, a).mean() - critic(made, a).mean()
    expected = torch.autograd.grad(10 * penalty - distance, critic)

    found = gradients(critic, real, made, a, share, 10.0)
    torch.testing.assert_close(found.penalty, penalty)
    torch.testing.assert_close(found.distance, distance)
    for one, two in zip(found.gradients, expected, strict=True):
        torch.testing.assert_close(one, two)


def test_a_critic_without_a_slope_has_finite_gradients() -> None:
    critic = Critic(*(torch.zeros(shape) for shape in ((9, 5), (9, 3), (9,), (9,), (1,))))
    rows = torch.ones(4, 5)
    found = gradients(critic, rows, rows, torch.ones(4, 3), torch.full((4, 1), 0.5), 10.0)
    assert all(bool(torch.isfinite(part).all()) for part in found.gradients)
