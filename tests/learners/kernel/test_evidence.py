"""Steps 3 to 9 of `evidence` once more, literally: an eigendecomposition, everything in feature space, float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from processes import CPU, state_of
from worlds import SPACE, Array, World, stream

from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Learner, Space
from stream_cgzsl.learners.kernel.class_process import class_process, measured
from stream_cgzsl.learners.kernel.evidence_episodes import Episode, EvidenceEpisodes, draw_episode
from stream_cgzsl.learners.numerics.randomness import generator
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.serving.generation import Generation, following
from stream_cgzsl.windows.window import Window

SHARED = Space(attributes=16, features=16, signed=True, shared=True)
both_spaces = pytest.mark.parametrize("space", [SPACE, SHARED], ids=["unshared", "shared"])

COUNTS = (1, 30, 2, 9, 1, 16, 3, 8, 17, 5)
"""Examples of the seen classes; the four classes after them are unseen."""

START = np.log(30.0), 0.05


class Reference:
    """One function per step, as the steps are written down."""

    def __init__(self, statistics: ClassStatistics, shared: bool) -> None:
        self.seen = np.flatnonzero(statistics.seen)
        self.n, self.attributes = statistics.counts, statistics.attributes
        self.d, self.c = statistics.space.features, len(self.n)
        self.whiten(statistics.means, statistics.moments.scatter)
        self.place_means()
        self.a, self.e = self.place_attributes(shared)

    def whiten(self, mu: Array, scatter: Array) -> None:
        """Step 3."""
        self.w = self.n / (self.n + 5)
        self.w = self.w / self.w.sum()
        self.m0 = sum(w * m for w, m in zip(self.w, mu, strict=True)) if self.c > 1 else np.zeros(self.d)
        self.dev = mu - self.m0
        self.spread = sum(w * d @ d for w, d in zip(self.w, self.dev, strict=True))
        free = max(self.n.sum() - self.c, 0)
        ev, self.v = np.linalg.eigh(scatter / max(free, 1))
        e = (free * np.maximum(ev, 0) + self.spread / (2 * self.d)) / (free + 1)
        self.v0 = max(e.mean(), 1e-12)
        self.s = e / self.v0
        alpha = 1 / (1 + 0.2 * free / self.d)
        self.q = np.sqrt((1 - alpha) * self.s + alpha)
        self.h = self.v / self.q
        self.sd = np.sqrt(self.s) / self.q
        self.tot = np.square(self.sd).sum()
        self.r0 = np.sqrt(self.d / max(self.tot, 0.001 * self.d))

    def place_means(self) -> None:
        """Step 4."""
        m = self.dev @ self.h / np.sqrt(self.v0)
        energies = np.square(m).sum(axis=1)
        self.rad = np.sqrt(max(self.w @ (energies - self.tot / self.n), 0.05 * self.w @ energies, 1e-12))
        self.m = m / self.rad
        self.nu = self.tot / self.rad**2
        self.sb = self.rad * self.r0 / np.sqrt(self.d + self.spread / self.v0)

    def place_attributes(self, shared: bool) -> tuple[Array, Array]:
        """Step 5: a and E of all classes."""
        a = self.attributes - self.w @ self.attributes[self.seen]
        a = a / np.sqrt(self.w @ np.square(a[self.seen]).sum(axis=1))
        if not shared:
            return a, np.zeros((len(a), self.d))
        b = self.attributes / np.linalg.norm(self.attributes, axis=1, keepdims=True)
        f = (b - self.w @ b[self.seen]) @ self.h
        return a, 0.5 * f / (self.w @ np.linalg.norm(f[self.seen], axis=1))

    def posterior(self, a: Array, e: Array, has: Array, n: Array, m: Array) -> tuple[Array, Array]:
        """Step 6: P and f of all classes. `a` is weighted, `has` are indices into it, n and m are those of `has`."""
        w = n / (n + 5) / (n / (n + 5)).sum()
        p = a - w @ a[has]
        p = p / np.sqrt(w @ np.square(p[has]).sum(axis=1))
        k = 0.6 * p @ p[has].T + 0.4 * np.exp(-0.5 * np.square(p[:, None] - p[has]).sum(axis=2))
        for place, c in enumerate(has):
            k[c, place] += 0.2
        r = k @ np.linalg.inv(k[has] + np.diag(self.nu / n))
        f = np.zeros(len(a))
        for place, c in enumerate(has):
            f[c] = r[c, place]
        return e + r @ (m - e[has]), f

    def head(self, p: Array, f: Array, b: float) -> tuple[Array, Array]:
        """Step 7."""
        lengths = np.linalg.norm(p, axis=1)
        return p / lengths[:, None] ** 0.5, -0.35 * self.sb * lengths**1.5 - b * f**2

    def loss(self, ard: Array, log_k: float, b: float, episode: Episode, noise: Array, row_noise: Array) -> float:
        """Step 8, one episode. Noise is in the feature space at within-class variance 1, the sign included."""
        order, kept = episode.order.numpy(), episode.kept
        k, left, labels = episode.learned.numpy(), episode.left.numpy(), episode.labels.numpy()
        n, m = self.n[order], self.m[order]
        sd_z, rows_sd_z = (z @ self.v / self.q / self.rad for z in (noise, row_noise))
        d = sd_z * np.sqrt(1 / k - 1 / n[:kept])[:, None]
        asked = m.copy()
        for c in range(kept):
            if left[c]:
                asked[c] = m[c] - d[c] * k[c] / left[c]
        x = self.rad * (asked[labels] + rows_sd_z * np.sqrt(1 - 1 / left[labels])[:, None])
        x = x * self.r0 / np.linalg.norm(x * self.q, axis=1, keepdims=True)
        a, e = (self.a * np.exp(ard))[self.seen][order], self.e[self.seen][order]
        w, bias = self.head(*self.posterior(a, e, np.arange(kept), k, m[:kept] + d), b)
        logits = np.exp(log_k) * (x @ w.T + bias)
        own = logits[np.arange(len(labels)), labels]
        return float(np.mean(np.log(np.exp(logits - own[:, None]).sum(axis=1))))

    def published(self, ard: Array, b: float) -> tuple[Array, Array]:
        """Step 9: vectors and biases."""
        p, f = self.posterior(self.a * np.exp(ard), self.e, self.seen, self.n, self.m)
        w, bias = self.head(p, f, b)
        vectors = self.r0 * w @ self.h.T
        scale = np.sqrt(np.square(vectors).sum(axis=1).mean())
        return vectors / scale, bias / scale


class Game:
    """The episodes of some windows, ours and the reference's, with the same draws."""

    def __init__(self, space: Space, *windows: Window, number: int = 1) -> None:
        shared = bool(space.shared)
        self.rng = generator(space.seed, number, "episodes")
        state = state_of(space, *windows)
        process = class_process(state, measured(state, shared, CPU), state.places.with_examples())
        self.episodes = EvidenceEpisodes(process, self.rng)
        self.reference = Reference(statistics_of(space, *windows), shared)
        self.pool = self.episodes._noise.numpy().astype(np.float64)

    def draw(self) -> Episode:
        return draw_episode(self.episodes.counts, self.episodes.pool, self.episodes.row_pool, self.rng)

    def ours(self, parameters: Array, episode: Episode) -> tuple[float, Array]:
        """Loss and derivatives; parameters are the attribute weights, the sharpness and the offset."""
        given = torch.tensor(parameters, dtype=torch.float32, requires_grad=True)
        loss = self.episodes.loss(given[:-2], given[-2], given[-1], episode)
        (gradient,) = torch.autograd.grad(loss, [given])
        return float(loss.detach()), gradient.numpy()

    def literally(self, parameters: Array, episode: Episode) -> float:
        noise = self.pool[episode.noise.numpy()] * episode.signs.numpy()[:, None]
        row_noise = self.pool[self.episodes.pool + episode.row_noise.numpy()] * episode.row_signs.numpy()[:, None]
        return self.reference.loss(parameters[:-2], parameters[-2], parameters[-1], episode, noise, row_noise)

    def derivative(self, parameters: Array, episode: Episode, step: float = 1e-5) -> Array:
        moves = step * np.eye(len(parameters))
        ends = [[self.literally(parameters + sign * move, episode) for sign in (1, -1)] for move in moves]
        return np.array([(up - down) / (2 * step) for up, down in ends])


def window_of(space: Space, counts: tuple[int, ...] = COUNTS, unseen: int = 4, number: int = 1) -> Window:
    world = World(space, classes=len(counts) + unseen)
    ids = world.ids(0, len(counts))
    rows = {c: world.rows(c, n) for c, n in zip(ids, counts, strict=True)}
    return Window.from_arrays(number, world.vectors, rows)


def statistics_of(space: Space, *windows: Window) -> ClassStatistics:
    statistics = ClassStatistics.empty(space)
    for window in windows:
        statistics = statistics.after_descriptions(window).after_features(window)
    return statistics


def trained(learner: Learner) -> tuple[Array, float]:
    """Logarithmic attribute weights, up to one that they have in common and that changes nothing; and the offset."""
    snapshot = learner.snapshot()
    return np.log(snapshot.arrays["frame.attribute_gains"]), snapshot.meta["frame"]["offset"]


def publishes_what_the_steps_say(statistics: ClassStatistics, found: Generation, ard: Array, b: float) -> None:
    reference = Reference(statistics, bool(statistics.space.shared))
    vectors, biases = reference.published(ard, b)
    np.testing.assert_allclose(found.centre, reference.m0, atol=1e-6)
    np.testing.assert_allclose(found.vectors, vectors, atol=1e-5)
    np.testing.assert_allclose(found.biases, biases, atol=1e-6)


@both_spaces
@pytest.mark.parametrize("counts", [COUNTS, (12,) * 10, (1,) * 10, (1,) * 9 + (300,)], ids=str)
def test_a_generation_is_what_the_steps_say(space: Space, counts: tuple[int, ...]) -> None:
    window = window_of(space, counts)
    learner = create("evidence", space)
    generation = following(None, learner.fit(window))
    publishes_what_the_steps_say(statistics_of(space, window), generation, *trained(learner))


@both_spaces
def test_where_every_window_refreshes_each_is_what_the_steps_say(space: Space) -> None:
    """All that are described too."""
    learner = create("evidence", space, {"growth": 0.0})
    generation: Generation | None = None
    windows = [replace(window, retired=()) for window in stream(World(space))]
    more = World(space, classes=20)
    for number in range(4, 8):
        windows.append(more.window(number, more.ids(number, 12 + number), more.ids(number, number + 1), rows=1))
    for until, window in enumerate(windows, 1):
        generation = following(generation, learner.fit(window))
        publishes_what_the_steps_say(statistics_of(space, *windows[:until]), generation, *trained(learner))
    assert generation is not None and generation.calibration["refresh"] == len(windows)


@both_spaces
def test_an_episode_costs_what_the_step_says(space: Space) -> None:
    game = Game(space, window_of(space))
    parameters = np.append(np.linspace(-0.4, 0.4, space.attributes), [np.log(20.0), 0.3])
    for _ in range(3):
        episode = game.draw()
        found, derivative = game.ours(parameters, episode)
        assert found == pytest.approx(game.literally(parameters, episode), rel=1e-4)
        np.testing.assert_allclose(derivative, game.derivative(parameters, episode), rtol=2e-3, atol=2e-4)


@both_spaces
def test_training_is_what_the_steps_say(space: Space) -> None:
    """Fifty steps of Adam on derivatives by finite differences."""
    learner = create("evidence", space)
    learner.fit(window_of(space))
    game = Game(space, window_of(space))
    parameters = np.append(np.zeros(space.attributes), START)
    first, second = np.zeros_like(parameters), np.zeros_like(parameters)
    for i in range(50):
        slope = game.derivative(parameters, game.draw())
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        rate = 0.02 * min(1, 2 * (1 - i / 50))
        parameters -= rate * (first / (1 - 0.9 ** (i + 1))) / (np.sqrt(second / (1 - 0.999 ** (i + 1))) + 1e-8)
    weights, offset = trained(learner)
    np.testing.assert_allclose(weights - weights.mean(), parameters[:-2] - parameters[:-2].mean(), atol=2e-3)
    assert offset == pytest.approx(parameters[-1], abs=1e-3)


def test_noise_has_the_pooled_covariance() -> None:
    game = Game(SPACE, window_of(SPACE, (40,) * 10))
    s = game.reference.v * game.reference.s @ game.reference.v.T
    for noise in (game.pool[: game.episodes.pool], game.pool[game.episodes.pool :]):
        assert np.abs(noise.T @ noise / len(noise) - s).max() < 8 * s.diagonal().max() / np.sqrt(len(noise))
