"""Each loss against its equation written out slowly, and which of G and D it moves."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.networks import Generator, Projector

SEEN, UNSEEN, FEATURES, ROWS = 5, 3, 7, 11


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def labels(count: int, classes: int, seed: int = 0) -> Tensor:
    return torch.randint(classes, (count,), generator=torch.Generator().manual_seed(seed))


def cosine(one: Tensor, two: Tensor) -> float:
    a, b = one.double().tolist(), two.double().tolist()
    product = sum(p * q for p, q in zip(a, b, strict=True))
    return product / math.sqrt(sum(p * p for p in a)) / math.sqrt(sum(q * q for q in b))


def cross_entropy(x: Tensor, y: Tensor, s: Tensor, scale: float) -> float:
    """Of softmax(k cos(x, S_c)), one row and one class after the other."""
    total = 0.0
    for row, label in zip(x, y.tolist(), strict=True):
        powers = [math.exp(scale * cosine(row, projection)) for projection in s]
        total -= math.log(powers[label] / sum(powers))
    return total / len(x)


@pytest.mark.parametrize("signed", [True, False])
def test_gan_of_the_projector(signed: bool) -> None:
    x, fake, s = (draw(n, FEATURES, seed=n) for n in (ROWS, 6, SEEN))
    if not signed:
        x, fake, s = x.abs(), fake.abs(), s.abs()
    y, fake_y = labels(ROWS, SEEN), labels(6, SEEN, seed=1)

    def p(row: Tensor, c: int) -> float:
        return (1 + cosine(row, s[c])) / 2 if signed else cosine(row, s[c])

    real = sum(math.log(p(x[i], int(y[i]))) for i in range(ROWS)) / ROWS
    made = sum(math.log(1 - p(fake[i], int(fake_y[i]))) for i in range(6)) / 6
    found = losses.gan_projector(losses.unit(x), y, losses.unit(fake), fake_y, losses.unit(s), signed)
    assert float(found) == pytest.approx(-(real + made), abs=1e-5)


def test_gan_of_the_generator() -> None:
    fake, s, y = draw(ROWS, FEATURES), draw(SEEN, FEATURES, seed=1), labels(ROWS, SEEN)
    found = [(1 + cosine(fake[i], s[int(y[i])])) / 2 for i in range(ROWS)]
    printed = sum(math.log(1 - p) for p in found) / ROWS
    assert float(losses.gan_generator(losses.unit(fake), y, losses.unit(s), True)) == pytest.approx(printed, abs=1e-5)
    other = -sum(map(math.log, found)) / ROWS
    assert float(losses.gan_generator_non_saturating(losses.unit(fake), y, losses.unit(s), True)) == pytest.approx(
        other, abs=1e-5
    )


def test_the_logarithm_is_finite_and_has_a_gradient_where_a_cosine_is_zero_or_negative() -> None:
    p = torch.tensor([0.5, 1e-3, 1e-6, 0.0, -0.3], requires_grad=True)
    found = losses.log(p)
    torch.testing.assert_close(found[:3], p[:3].log())
    assert bool(torch.isfinite(found).all()) and bool((found.diff() < 0).all())
    found.sum().backward()
    assert p.grad is not None
    torch.testing.assert_close(p.grad[:3], 1 / p.detach()[:3])
    assert p.grad[3:].tolist() == pytest.approx([1e6, 1e6])


def test_gan_stays_finite_where_a_cosine_is_one_or_negative() -> None:
    x = losses.unit(torch.ones(2, FEATURES))
    y = torch.zeros(2, dtype=torch.int64)
    for s in (x[:1], -x[:1], torch.zeros_like(x[:1])):
        assert torch.isfinite(losses.gan_projector(x, y, x, y, s, False))
        assert torch.isfinite(losses.gan_generator(x, y, s, False))


@pytest.mark.parametrize("loss", [losses.rcl, losses.pcl, losses.snl])
def test_classification(loss: Callable[[Tensor, Tensor, Tensor, float], Tensor]) -> None:
    x, s, y = draw(ROWS, FEATURES), draw(SEEN, FEATURES, seed=1), labels(ROWS, SEEN)
    found = loss(losses.unit(x), y, losses.unit(s), 10.0)
    assert float(found) == pytest.approx(cross_entropy(x, y, s, 10.0), abs=1e-5)


def test_semantic_alignment() -> None:
    eps, n = 0.1, 2
    attributes = draw(SEEN + UNSEEN, 4)
    means, fake = draw(SEEN, FEATURES, seed=1), draw(SEEN + UNSEEN, FEATURES, seed=2)
    expected = 0.0
    for i in range(SEEN + UNSEEN):
        others = sorted((j for j in range(SEEN) if j != i), key=lambda j: -cosine(attributes[j], attributes[i]))
        for j in others[:n]:
            similar, made = cosine(attributes[j], attributes[i]), cosine(means[j], fake[i])
            expected += max(0.0, made - (similar + eps)) ** 2 + max(0.0, (similar - eps) - made) ** 2
    near, similarity, nearness = losses.neighbours(attributes, SEEN, n)
    found = losses.sal(fake, losses.unit(means)[near], similarity, nearness, eps)
    assert float(found) == pytest.approx(expected / (SEEN + UNSEEN), abs=1e-5)


def test_semantic_alignment_is_zero_inside_the_tolerance() -> None:
    means = losses.unit(draw(1, 1, FEATURES))
    similarity = torch.tensor([[0.95]])
    assert float(losses.sal(means[0], means, similarity, torch.ones(1, 1), 0.06)) == 0
    assert float(losses.sal(means[0], means, similarity, torch.ones(1, 1), 0.04)) > 0


def test_a_class_is_not_its_own_neighbour() -> None:
    attributes = draw(3, 4)
    near, _, nearness = losses.neighbours(attributes, 1, 2)
    assert near.tolist() == [[0], [0], [0]]
    assert nearness.tolist() == [[0.0], [1.0], [1.0]]


def test_equally_near_neighbours_come_in_order() -> None:
    near, similarity, _ = losses.neighbours(torch.ones(4, 2), 3, 2)
    assert near.tolist() == [[1, 2], [0, 2], [0, 1], [0, 1]]
    np.testing.assert_allclose(similarity, 1, rtol=1e-6)


def test_nuclear() -> None:
    s, means = draw(SEEN, FEATURES), draw(SEEN, FEATURES, seed=1)
    expected = sum(float((means[c, f] - s[c, f]) ** 2) for c in range(SEEN) for f in range(FEATURES)) / SEEN
    assert float(losses.nuclear(s, means)) == pytest.approx(expected, rel=1e-5)


def test_the_first_moment_is_the_squared_distance_of_means() -> None:
    mean = draw(1, FEATURES)
    one, other = (mean + 0.5 + draw(200_000, FEATURES, seed=seed) for seed in (1, 2))
    assert float(losses.first_moment(one, other, mean)) == pytest.approx(FEATURES * 0.25, abs=0.05)


def test_the_second_moment_compares_deviations() -> None:
    variance = torch.tensor([1.0, 4.0])
    one, other = (draw(400_000, 2, seed=seed) * torch.tensor([3.0, 2.0]) for seed in (1, 2))
    assert float(losses.second_moment(one, other, variance)) == pytest.approx((3 - 1) ** 2, abs=0.05)


def test_the_second_moment_has_a_gradient_where_nothing_varies() -> None:
    one = torch.zeros(4, 2, requires_grad=True)
    losses.second_moment(one, torch.zeros(4, 2), torch.zeros(2)).backward()
    assert one.grad is not None and torch.isfinite(one.grad).all()


class Pair:
    """A G and a D, and what a loss needs of them."""

    def __init__(self) -> None:
        rng = torch.Generator().manual_seed(0)
        self.g = Generator(4, 8, FEATURES, "sigmoid", rng)
        self.d = Projector(4, 8, FEATURES, "linear", rng)
        a = torch.randn(SEEN + UNSEEN, 4, generator=rng)
        self.projections = self.d(a)
        self.s = losses.unit(self.projections)
        self.y = labels(ROWS, SEEN)
        self.unseen = SEEN + labels(ROWS, UNSEEN)
        self.x = losses.unit(draw(ROWS, FEATURES, seed=3).abs())
        self.fake_means = self.g.generate(torch.zeros_like(a), a)
        self.fake, self.other = (self.g.generate(draw(ROWS, 4, seed=s), a[self.y]) for s in (4, 5))
        self.fake_unseen = losses.unit(self.g.generate(draw(ROWS, 4, seed=6), a[self.unseen]))
        self.made = losses.unit(self.fake)
        self.means = draw(SEEN, FEATURES, seed=7).abs()
        self.near, self.similarity, self.nearness = losses.neighbours(a, SEEN, 2)

    def moved(self, loss: Tensor) -> str:
        loss.backward()
        networks = {"G": self.g, "D": self.d}
        return "".join(
            name
            for name, network in networks.items()
            if any(p.grad is not None and bool(p.grad.abs().max() > 0) for p in network.parameters())
        )


TERMS: dict[str, tuple[str, Callable[[Pair], Tensor]]] = {
    "gan_projector": ("D", lambda p: losses.gan_projector(p.x, p.y, p.made, p.y, p.s, True)),
    "gan_generator": ("G", lambda p: losses.gan_generator(p.made, p.y, p.s, True)),
    "gan_generator_non_saturating": ("G", lambda p: losses.gan_generator_non_saturating(p.made, p.y, p.s, True)),
    "rcl": ("D", lambda p: losses.rcl(p.x, p.y, p.s[:SEEN], 10.0)),
    "pcl": ("G", lambda p: losses.pcl(p.made, p.y, p.s[:SEEN], 10.0)),
    "snl": ("D", lambda p: losses.snl(p.fake_unseen, p.unseen, p.s, 10.0)),
    "sal": ("G", lambda p: losses.sal(p.fake_means, losses.unit(p.means)[p.near], p.similarity, p.nearness, 0.01)),
    "nuclear": ("D", lambda p: losses.nuclear(p.projections[:SEEN], p.means)),
    "first_moment": ("G", lambda p: losses.first_moment(p.fake, p.other, p.means[p.y])),
    "second_moment": ("G", lambda p: losses.second_moment(p.fake, p.other, torch.full((FEATURES,), 1e-4))),
}


@pytest.mark.parametrize("term", TERMS)
def test_a_term_moves_the_network_it_is_meant_for_and_no_other(term: str) -> None:
    expected, loss = TERMS[term]
    pair = Pair()
    assert pair.moved(loss(pair)) == expected


def test_both_sides_of_the_gan_move_the_projector_by_real_and_by_generated_features() -> None:
    def gradient(x: Tensor, made: Tensor) -> Tensor:
        s = losses.unit(draw(SEEN, FEATURES)).requires_grad_()
        y = labels(ROWS, SEEN)
        losses.gan_projector(x, y, made, y, s, True).backward()
        assert s.grad is not None
        return s.grad

    x, made, others = (losses.unit(draw(ROWS, FEATURES, seed=seed)) for seed in (1, 2, 3))
    usual = gradient(x, made)
    assert not torch.equal(gradient(others, made), usual)
    assert not torch.equal(gradient(x, others), usual)


def test_a_row_of_zeros_has_no_direction() -> None:
    assert losses.unit(torch.zeros(1, 3)).tolist() == [[0.0, 0.0, 0.0]]
