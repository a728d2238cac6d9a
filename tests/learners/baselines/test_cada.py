from __future__ import annotations

import numpy as np
import pytest
import torch
from worlds import SPACE, World, quick_options

from stream_cgzsl.learners.baselines.cada import WEIGHTS, Cada, Warmup, alignment, total
from stream_cgzsl.learners.baselines.scaling import Range
from stream_cgzsl.learners.baselines.seq_cada import SeqCada

RNG = torch.Generator().manual_seed(0)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=RNG)


def test_alignment_is_the_wasserstein_distance_of_gaussians_with_diagonal_covariance() -> None:
    codes = [drawn(4, 3) for _ in range(4)]
    expected = 0.0
    for m1, v1, m2, v2 in zip(*codes, strict=True):
        one, two = np.diag(np.exp(v1.numpy())), np.diag(np.exp(v2.numpy()))
        bures = np.trace(one + two - 2 * np.sqrt(np.sqrt(one) @ two @ np.sqrt(one)))
        expected += np.sqrt(float((m1 - m2).square().sum()) + bures)
    assert float(alignment(*codes)) == pytest.approx(expected, rel=1e-4)


def test_equal_codes_have_a_finite_gradient() -> None:
    mean = drawn(4, 3).requires_grad_()
    alignment(mean, torch.zeros(4, 3), mean.detach().clone(), torch.zeros(4, 3)).backward()
    assert mean.grad is not None and torch.isfinite(mean.grad).all()


@pytest.mark.parametrize(("epoch", "expected"), [(0, 0.0), (6, 0.0), (14, 4.065), (22, 8.13), (99, 8.13)])
def test_weights_grow_between_two_epochs(epoch: int, expected: float) -> None:
    assert Warmup(8.13, 6, 22).at(epoch) == pytest.approx(expected)


def test_the_total_is_the_weighted_sum() -> None:
    losses = {name: torch.tensor(float(place)) for place, name in enumerate(("reconstruction", *WEIGHTS), 1)}
    expected = 1 + sum(WEIGHTS[name].at(50) * place for place, name in enumerate(WEIGHTS, 2))
    assert float(total(losses, 50)) == pytest.approx(expected)


def test_reconstructions_are_absolute_errors_from_either_code() -> None:
    x, a = drawn(7, 16), drawn(7, 6)
    cada = Cada.started(16, 6, 4, 0.02, Range.of(x), RNG)
    for part in (0, 2):  # almost no variance: the codes are then their means, and the noise does not matter
        w, b = cada.parts[part].weights[1]
        w[4:], b[4:] = 0, -40
    losses = cada.losses(x, a, RNG)
    z, z_a = cada.parts[0](x)[:, :4], cada.parts[2](a)[:, :4]
    for name, (one, two) in {"reconstruction": (z, z_a), "cross_reconstruction": (z_a, z)}.items():
        expected = (cada.parts[1](one) - x).abs().sum() + (cada.parts[3](two) - a).abs().sum()
        torch.testing.assert_close(losses[name], expected)


def test_a_folded_layer_takes_rows_as_they_come() -> None:
    x, w, b = drawn(9, 5), drawn(3, 5), drawn(3)
    scale = Range.of(x)
    folded, bias = scale.folded(w, b)
    torch.testing.assert_close(x @ folded.T + bias, scale.scaled(x) @ w.T + b, rtol=1e-4, atol=1e-5)
    assert scale.scaled(x).amin() == 0 and scale.scaled(x).amax() == 1
    torch.testing.assert_close(scale.restored(scale.scaled(x)), x, rtol=1e-4, atol=1e-6)


def test_scores_are_the_heads_on_the_mean_of_a_rows_code() -> None:
    world = World()
    learner = SeqCada(SPACE, quick_options()["seq-cada"])
    generation = learner.fit(world.window(1, world.ids(0, 8), world.ids(0, 6)))
    arrays = {name.removeprefix("memory."): array for name, array in learner.snapshot().arrays.items()}
    cada, x = Cada.loaded(arrays, torch.device("cpu")), torch.from_numpy(world.rows("c0002", 5))
    mean = cada.parts[0](cada.scale.scaled(x))[:, :4]
    expected = mean @ torch.from_numpy(arrays["head.w"]).T + torch.from_numpy(arrays["head.b"])
    np.testing.assert_allclose(generation.scores(x.numpy()), expected.numpy(), rtol=1e-3, atol=1e-4)
