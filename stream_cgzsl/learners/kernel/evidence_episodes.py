"""Step 8 of `evidence`, training by episodes: some classes are hidden, and the examples of the others are split.

A hidden class must be recognised from its attributes alone. Of a class that is not hidden, most examples are learned
from and the others are asked about. The split is exact although no example is kept: given the mean of n rows of known
covariance, the mean of k of them and the mean of the rest have a known joint distribution.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F

from stream_cgzsl.learners.interface import Monitor, Progress
from stream_cgzsl.learners.kernel.class_process import ClassProcess, regression
from stream_cgzsl.learners.kernel.gaussian_replay import JITTER, covariance_factor
from stream_cgzsl.learners.numerics.adam import Adam
from stream_cgzsl.learners.numerics.threads import one_thread
from stream_cgzsl.learners.numerics.triangular import times_lower_transposed
from stream_cgzsl.learners.whitened.publication import EXPONENT, LEAN
from stream_cgzsl.learners.whitened.space import TINY

STEPS = 50
BATCH = 256
RATE = 0.02
SHARPNESS = 30.0
OFFSET = 0.05

FEWEST = 4
"""With fewer classes nothing is trained."""

MOST = 512
"""Most classes in an episode; of more, each episode takes as many at random, so that the cost of a step is bounded."""

LEFT_OUT = 8
"""Of a class that is not hidden, one example in this many is asked about."""

FEWEST_ASKED = 2
"""With fewer classes to ask about besides the hidden ones, the offset is not trained."""

CLASS_POOL, ROW_POOL = 2, 4
"""Noise is drawn for this many episodes, and used again with other signs and for other classes."""


class Trained(NamedTuple):
    weights: torch.Tensor  # [attributes] float32: a logarithmic weight per attribute
    offset: float  # b


class Episode(NamedTuple):
    """Which classes take part, by index among the seen ones: first those with observations, then the hidden ones."""

    order: torch.Tensor  # [present]
    kept: int  # how many are not hidden
    learned: torch.Tensor  # k [kept]: examples that are learned from
    left: torch.Tensor  # [present]: examples that are asked about
    labels: torch.Tensor  # [batch] positions in `order`: the class of each row that is asked about
    noise: torch.Tensor  # [kept] rows of the pool: how the mean that is learned from deviates
    signs: torch.Tensor  # [kept] of this noise
    row_noise: torch.Tensor  # [batch] rows of the pool of row noise
    row_signs: torch.Tensor  # [batch]


def draw_episode(counts: torch.Tensor, pool: int, rows: int, rng: torch.Generator) -> Episode:
    """A random episode of classes with these counts. Drawn on the CPU, whatever the device."""
    classes, device = len(counts), counts.device
    present = min(classes, MOST)
    kept = present - min(max(2, round(present / 4)), present - 2)
    order = torch.randperm(classes, generator=rng)[:present]
    n = counts.cpu()[order]
    learned = (n[:kept] - (n[:kept] // LEFT_OUT).clamp_min(1)).clamp_min(1)
    left = torch.cat([n[:kept] - learned, n[kept:]])
    asked = left[:kept].nonzero()[:, 0]
    half = BATCH // 2 if len(asked) else BATCH
    labels = [torch.randint(kept, present, (half,), generator=rng)]
    if len(asked):
        labels.append(asked[torch.randint(len(asked), (BATCH - half,), generator=rng)])
    noise, row_noise = torch.randperm(pool, generator=rng)[:kept], torch.randperm(rows, generator=rng)[:BATCH]
    signs = 2.0 * torch.randint(2, (kept + BATCH,), generator=rng) - 1
    drawn = order, learned, left, torch.cat(labels), noise, signs[:kept], row_noise, signs[kept:]
    order, learned, left, positions, noise, signs, row_noise, row_signs = (part.to(device) for part in drawn)
    return Episode(order, kept, learned.float(), left.float(), positions, noise, signs, row_noise, row_signs)


class EvidenceEpisodes:
    """The C seen classes as products between means, class vectors and noise, so that a step costs nothing per feature.

    Whitened vectors are in units of a true mean. E is what a shared space expects (else 0), d the deviation of the mean
    that is learned from, T = M + d - E what is observed. A class is at P = E + R T, so scores need x.P = x.E + R (x.T)
    and |P|^2 = |E|^2 + 2 R (E.T) + R (T.T') R'.
    """

    def __init__(self, process: ClassProcess, rng: torch.Generator) -> None:
        measures, whitening = process.measures, process.measures.whitening
        self._measures = measures
        self.counts = process.counts
        self.attributes = process.attributes.to(torch.float32)  # [C, attributes]
        present = min(len(self.counts), MOST)
        self.pool, self.row_pool = CLASS_POOL * present, ROW_POOL * BATCH
        factor = covariance_factor(whitening.covariance(), JITTER)
        z = torch.randn(self.pool + self.row_pool, whitening.features, generator=rng).to(factor.device)
        noise = times_lower_transposed(z, factor)  # published, at within-class variance 1
        self._offsets, self._noise = process.offsets.to(torch.float32), noise  # [C, F], [pool + rows, F]
        expected = process.expected
        targets = process.means if expected is None else process.means - expected  # M - E
        exact = targets if expected is None else torch.cat([targets, expected])  # [C or 2 C, F]
        root = whitening.root.to(torch.float32)
        drawn = whitening.into(noise[: self.pool], root) / measures.radius  # [pool, F]
        directions = torch.cat([exact.to(torch.float32), drawn])
        published = torch.cat([whitening.out_of(exact).to(torch.float32), whitening.out_of(drawn, root)])
        self._with_offsets = self._offsets @ published.T  # products of offsets, and of noise, with directions
        self._with_noise = noise @ published.T
        self._shared = expected is not None
        self._first_noise = len(exact)
        self._between = (
            directions[: self._first_noise] @ directions.T
        )  # [C or 2 C, 2 C + pool]: of T and E with all directions
        self._noise_gram = drawn @ drawn.T  # [pool, pool]

    def loss(
        self, weights: torch.Tensor, sharpness: torch.Tensor, offset: torch.Tensor, episode: Episode
    ) -> torch.Tensor:
        """Cross-entropy of the rows that are asked about, among the episode's classes. `sharpness` is a logarithm."""
        measures, e, kept = self._measures, episode, episode.kept
        has, classes = e.order[:kept], len(self.counts)
        deviation = e.signs * (1 / e.learned - 1 / self.counts[has].float()).clamp_min(0).sqrt()  # [kept], times noise
        known_products, expected = self._products(episode, deviation)  # x.T [batch, kept], x.E [batch, present] or None
        attributes = self.attributes[e.order] * weights.exp()
        r, share = regression(attributes, torch.arange(kept, device=has.device), e.learned, measures.noise)

        place = self._first_noise + e.noise
        cross = self._between[has[:, None], place] * deviation  # T0.d'
        gram = self._between[has[:, None], has] + cross + cross.T
        gram = gram + deviation[:, None] * self._noise_gram[e.noise[:, None], e.noise] * deviation  # T.T' [kept, kept]
        spread = r.detach() @ gram  # [present, kept]
        energy = ((2 * r - r.detach()) * spread).sum(dim=1)  # R (T.T') R', and its derivative, from one product
        scores = known_products @ r.T  # [batch, present]
        if expected is not None:
            rows = e.order + classes
            with_t = self._between[rows[:, None], has] + self._between[rows[:, None], place] * deviation  # E.T
            own = self._between[rows, rows]  # |E|^2
            energy, scores = energy + 2 * (r * with_t).sum(dim=1) + own, scores + expected
        lengths = energy.clamp_min(TINY**2).sqrt()
        lowered = F.pad(offset * share.square(), (0, len(e.order) - kept))
        biases = -LEAN * measures.signal * lengths ** (2 - EXPONENT) - lowered
        return F.cross_entropy(sharpness.exp() * (scores * lengths**-EXPONENT + biases), e.labels)

    def _products(self, e: Episode, deviation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Of the rows that are asked about, with T of the classes that are not hidden, and with E of all."""
        kept, has, classes = e.kept, e.order[: e.kept], len(self.counts)
        known = e.labels < kept
        class_noise = e.noise[e.labels.clamp_max(kept - 1)]  # of each row's class, unused where it is hidden
        place = e.labels.clamp_max(kept - 1)
        left = e.left[e.labels]
        away = torch.where(known, -deviation[place] * e.learned[place] / left, 0.0)  # the rest deviates the other way
        spread = e.row_signs * (1 - 1 / left).clamp_min(0).sqrt()
        row, noise = e.order[e.labels], self.pool + e.row_noise
        x = self._offsets[row] + away[:, None] * self._noise[class_noise] + spread[:, None] * self._noise[noise]
        scale = self._measures.whitening.gain * x.square().sum(dim=1).clamp_min(1e-12).rsqrt()  # [batch]

        def products(columns: torch.Tensor) -> torch.Tensor:
            found = self._with_offsets[row[:, None], columns]
            found = found + away[:, None] * self._with_noise[class_noise[:, None], columns]
            return scale[:, None] * (found + spread[:, None] * self._with_noise[noise[:, None], columns])

        known_products = products(has) + deviation * products(self._first_noise + e.noise)
        return known_products, products(e.order + classes) if self._shared else None


def train(episodes: EvidenceEpisodes, rng: torch.Generator, monitor: Monitor, weigh: bool = True) -> Trained:
    """From scratch at every window, so nothing of an earlier one is needed. There must be at least `FEWEST` classes."""
    device = episodes.attributes.device
    weights = torch.zeros(episodes.attributes.shape[1], device=device)
    sharpness = torch.tensor(SHARPNESS, device=device).log()
    offset = torch.tensor(OFFSET, device=device)
    parameters = [weights, sharpness, offset] if weigh else [sharpness, offset]
    optimiser = Adam(parameters)
    with one_thread():
        for step in range(STEPS):
            monitor.check()
            episode = draw_episode(episodes.counts, episodes.pool, episodes.row_pool, rng)
            loss = episodes.loss(weights, sharpness, offset, episode)
            gradients = list(torch.autograd.grad(loss, parameters))
            if int((episode.left[: episode.kept] > 0).sum()) < FEWEST_ASKED:
                gradients[-1] = torch.zeros_like(offset)
            optimiser.step(gradients, RATE * min(1.0, 2 * (1 - step / STEPS)))
            monitor.progress(Progress(step + 1, STEPS, {"rcl": float(loss.detach())}))
    return Trained(weights.detach(), float(offset.detach()))
