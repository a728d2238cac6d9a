"""G and D: shapes, outputs, initial weights, and the way into and out of a snapshot."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stream_cgzsl.learners.gan.networks import Generator, Projector, TwoLayers, noise


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def same(one: TwoLayers, two: TwoLayers) -> bool:
    return all(torch.equal(p, q) for p, q in zip(one.parameters(), two.parameters(), strict=True))


def test_forward_is_two_layers() -> None:
    network = TwoLayers(3, 5, 4, "linear", rng(), gain=2.0)
    with torch.no_grad():
        network.b1.fill_(0.3)
        network.b2.fill_(0.7)
        x = torch.randn(6, 3, generator=rng(1))
        expected = 2.0 * (torch.clamp(x @ network.w1.T + 0.3, min=0) @ network.w2.T + 0.7)
        torch.testing.assert_close(network(x), expected)


@pytest.mark.parametrize(
    ("output", "least", "most"), [("sigmoid", 0.0, 1.0), ("relu", 0.0, np.inf), ("linear", -np.inf, np.inf)]
)
def test_outputs_keep_to_their_range(output: str, least: float, most: float) -> None:
    y = TwoLayers(3, 64, 50, output, rng())(10 * torch.randn(20, 3, generator=rng(1))).detach()
    assert float(y.min()) >= least and float(y.max()) <= most
    assert (float(y.min()) < 0) == (output == "linear")


def test_weights_are_xavier_normal_and_biases_zero() -> None:
    network = Projector(300, 1024, 2000, "relu", rng())
    for weights in (network.w1.detach(), network.w2.detach()):
        assert float(weights.mean()) == pytest.approx(0, abs=1e-3)
        assert float(weights.std()) == pytest.approx((2 / sum(weights.shape)) ** 0.5, rel=0.01)
    assert not network.b1.any() and not network.b2.any()


def test_weights_depend_on_the_generator_alone() -> None:
    torch.manual_seed(1)
    one = Projector(3, 4, 5, "relu", rng(7))
    torch.manual_seed(2)
    assert same(one, Projector(3, 4, 5, "relu", rng(7)))
    assert not same(one, Projector(3, 4, 5, "relu", rng(8)))


def test_g_takes_noise_of_the_attributes_size() -> None:
    g = Generator(3, 8, 5, "sigmoid", rng())
    a = torch.ones(4, 3)
    z = noise(4, a, rng(1))
    assert z.shape == a.shape
    features = g.generate(z, a)
    assert features.shape == (4, 5)
    assert not torch.equal(features[0], features[1])


def test_arrays_are_copies_and_load_gives_them_back() -> None:
    one, two = Projector(3, 4, 5, "relu", rng(1)), Projector(3, 4, 5, "relu", rng(2))
    arrays = one.arrays("D")
    two.load("D", arrays)
    assert same(one, two)
    arrays["D.w1"][:] = 0
    assert one.w1.any() and two.w1.any()


@pytest.mark.parametrize("other", [Projector(3, 6, 5, "relu", rng()).arrays("D"), {}])
def test_weights_of_another_size_are_refused(other: dict[str, np.ndarray]) -> None:
    with pytest.raises(ValueError, match=r"D\.w1, which needs shape \(4, 3\)"):
        Projector(3, 4, 5, "relu", rng()).load("D", other)


def test_blend_keeps_a_share() -> None:
    one, two = Projector(3, 4, 5, "relu", rng(1)), Projector(3, 4, 5, "relu", rng(2))
    expected = 0.3 * one.w1.detach() + 0.7 * two.w1.detach()
    one.blend(two, 0.3)
    torch.testing.assert_close(one.w1.detach(), expected)


def test_unknown_outputs_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown output 'tanh'"):
        TwoLayers(1, 1, 1, "tanh", rng())
