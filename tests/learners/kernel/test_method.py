"""The nine steps, once more and literally, with an eigendecomposition and everything in feature space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from worlds import SPACE, Array, World

from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Space
from stream_cgzsl.learners.kernel.episodes import Episodes, Recipe
from stream_cgzsl.learners.kernel.gaussian_replay import GaussianReplay
from stream_cgzsl.learners.kernel.projection import project
from stream_cgzsl.learners.numerics.randomness import generator
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.whitened.publication import head, publish
from stream_cgzsl.learners.whitened.space import WhitenedSpace, whitened_space
from stream_cgzsl.learners.whitened.whitening import whiten

SHARED = Space(attributes=16, features=16, signed=True, shared=True)
both_spaces = pytest.mark.parametrize("space", [SPACE, SHARED])


class Reference:
    """Steps 3 to 7 and 9 as they are written down."""

    def __init__(self, statistics: ClassStatistics, shared: bool) -> None:
        moments = statistics.moments
        d = statistics.space.features
        n, c = moments.rows, len(moments.counts)
        ev, vectors = np.linalg.eigh(moments.scatter / max(n - c, 1))
        self.v0 = ev.mean()
        e = np.maximum(ev, 0) / self.v0
        alpha = 1 / (1 + 0.2 * n / d)
        self.q = np.sqrt((1 - alpha) * e + alpha)
        self.h = vectors / self.q
        self.vectors = vectors
        self.sd = np.sqrt(e) / self.q
        self.r0 = np.sqrt(d / max(np.square(self.sd).sum(), 0.001 * d))
        mu = statistics.means
        self.m0 = mu.mean(axis=0) if c > 1 else np.zeros(d)
        m = (mu - self.m0) @ self.h
        r = np.linalg.norm(m, axis=1).mean()
        self.m = m / r
        self.rad = r / np.sqrt(self.v0)
        self.sb = self.rad / (np.sqrt(d + np.square(mu - self.m0).sum(axis=1).mean() / self.v0) / self.r0)
        self.seen = statistics.seen
        a = statistics.attributes - statistics.attributes[self.seen].mean(axis=0)
        self.a = a / np.sqrt(np.square(a[self.seen]).sum(axis=1).mean())
        self.f = np.zeros((len(a), d))
        if shared:
            b = statistics.attributes / np.linalg.norm(statistics.attributes, axis=1, keepdims=True)
            f = (b - b[self.seen].mean(axis=0)) @ self.h
            self.f = f / np.linalg.norm(f[self.seen], axis=1).mean()

    def project(self, a: Array, f: Array, m: Array, keep: Array, rest: Array) -> Array:
        """P of keep and of rest, in this order; m holds the means of keep."""
        p = a - a[keep].mean(axis=0)
        p = p / np.sqrt(np.square(p[keep]).sum(axis=1).mean())
        u, w = p[keep], p[rest]
        weights = kernel(w, u) @ np.linalg.inv(kernel(u, u) + 0.3 * np.eye(len(u)))
        return np.concatenate([m, 0.5 * f[rest] + weights @ (m - 0.5 * f[keep])])

    def head(self, p: Array) -> tuple[Array, Array]:
        lengths = np.linalg.norm(p, axis=1)
        return p / lengths[:, None] ** 0.5, -0.35 * self.sb * lengths**1.5


def kernel(x: Array, y: Array) -> Array:
    distances = np.square(x[:, None] - y[None]).sum(axis=2)
    return np.asarray(0.6 * x @ y.T + 0.4 * np.exp(-0.5 * distances))


def statistics_of(space: Space, seen: int = 10) -> ClassStatistics:
    world = World(space, classes=14)
    window = world.window(1, world.ids(0, 14), world.ids(0, seen))
    return ClassStatistics.empty(space).after_descriptions(window).after_features(window)


def space_of(statistics: ClassStatistics, shared: bool) -> WhitenedSpace:
    return whitened_space(statistics, shared, whiten(statistics.moments))


@both_spaces
def test_what_is_published_is_what_the_steps_say(space: Space) -> None:
    statistics = statistics_of(space)
    standard = space_of(statistics, bool(space.shared))
    weights = torch.linspace(-0.5, 0.5, space.attributes, dtype=torch.float64)
    found = publish(1, statistics, standard, head(project(standard, weights), standard.signal), 0.07, {})

    reference = Reference(statistics, bool(space.shared))
    keep, rest = np.flatnonzero(statistics.seen), np.flatnonzero(~statistics.seen)
    p = reference.project(reference.a * np.exp(weights.numpy()), reference.f, reference.m, keep, rest)
    w, bias = reference.head(p)
    vectors = reference.r0 * w @ reference.h.T
    scale = np.sqrt(np.square(vectors).sum(axis=1).mean())
    order = np.argsort(np.concatenate([keep, rest]))
    np.testing.assert_allclose(found.centre, reference.m0, atol=1e-6)
    np.testing.assert_allclose(found.vectors, vectors[order] / scale, atol=1e-5)
    np.testing.assert_allclose(found.biases, (bias[order] - 0.07 * statistics.seen) / scale, atol=1e-6)


@both_spaces
@pytest.mark.parametrize("present", [10, 8])
def test_an_episode_costs_what_the_step_says(space: Space, present: int) -> None:
    statistics = statistics_of(space)
    standard = space_of(statistics, bool(space.shared))
    episodes = Episodes(standard, Recipe())
    draws = GaussianReplay(standard, episodes.directions, 20, generator(0, 1, "test"))
    random = np.random.default_rng(0)
    order, kept, turn = random.permutation(10)[:present], 6, 14
    labels = random.integers(0, present, size=20)
    weights = random.normal(size=space.attributes) * 0.3
    found = episodes.loss(
        torch.tensor(weights, dtype=torch.float32),
        torch.tensor(np.log(30.0), dtype=torch.float32),
        torch.tensor(0.1),
        torch.from_numpy(order),
        kept,
        torch.from_numpy(labels),
        draws.take(torch.from_numpy(order[labels]), turn),
    )

    reference = Reference(statistics, bool(space.shared))
    noise = -draws._noise[2 * 20 : 3 * 20].numpy().astype(np.float64)  # turn 14: the third batch, sign turned
    seen = statistics.seen
    c = order[labels]
    x = reference.rad * reference.m[c] + noise @ reference.vectors / reference.q
    x *= reference.r0 / np.linalg.norm(x * reference.q, axis=1, keepdims=True)
    a, f = reference.a[seen] * np.exp(weights), reference.f[seen]
    w, bias = reference.head(reference.project(a, f, reference.m[order[:kept]], order[:kept], order[kept:]))
    logits = 30 * (x @ w.T + bias - 0.1 * (np.arange(present) < kept))
    expected = np.mean([np.log(np.exp(row - row[label]).sum()) for row, label in zip(logits, labels, strict=True)])
    assert float(found) == pytest.approx(expected, rel=1e-4)


def test_draws_have_the_pooled_covariance() -> None:
    statistics = statistics_of(SPACE)
    standard = space_of(statistics, False)
    draws = GaussianReplay(standard, standard.means, 4000, generator(0, 1, "test"))
    found = torch.from_numpy(np.cov(draws._noise.numpy().T, bias=True))
    assert float((found - standard.whitening.covariance()).abs().max()) < 0.1


@both_spaces
def test_noise_is_used_with_both_signs(space: Space) -> None:
    standard = space_of(statistics_of(space), bool(space.shared))
    zero = replace(standard, offsets=torch.zeros_like(standard.offsets))
    draws = GaussianReplay(zero, standard.means, 5, generator(0, 1, "test"))
    labels = torch.arange(5)
    torch.testing.assert_close(draws.take(labels, 3), -draws.take(labels, 15))


def test_training_learns_which_attributes_matter() -> None:
    world = World(classes=40, noise=0.3)
    random = np.random.default_rng(5)
    misleading = {c: np.concatenate([v, 3 * random.normal(size=6)]) for c, v in world.vectors.items()}
    space = replace(SPACE, attributes=12)
    world.vectors = misleading
    learner = create("episodic", space)
    learner.fit(world.window(1, world.ids(0, 40), world.ids(0, 36)))
    weights = learner.snapshot().arrays["memory.weights"]
    assert weights[:6].mean() > weights[6:].mean() + 0.3
