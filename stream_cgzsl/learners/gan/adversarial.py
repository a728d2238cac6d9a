"""The paper's networks, losses and replay in the whitened feature space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from stream_cgzsl.learners.calibration.held_out import Scorer
from stream_cgzsl.learners.calibration.prequential import Withheld
from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.base import Draw, NetworkLearner, NetworkOptions, Networks
from stream_cgzsl.learners.gan.batches import Balanced, Rows
from stream_cgzsl.learners.gan.inputs import MOST_VARIANCE, Inputs, WhitenedClasses, into_space, published_directions
from stream_cgzsl.learners.gan.networks import Generator, Projector, noise
from stream_cgzsl.learners.gan.paper import PROGRESS_EVERY, descend
from stream_cgzsl.learners.gan.replay import Replay, mixed, real, replay
from stream_cgzsl.learners.interface import Monitor, Progress, Snapshot, Space
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.learner import Lesson
from stream_cgzsl.learners.statistics.shared_space import SharedSpace, decide_shared
from stream_cgzsl.learners.whitened.publication import Head, head, publish, published_vectors, scorer
from stream_cgzsl.learners.whitened.space import SpaceCache, WhitenedSpace
from stream_cgzsl.serving.cuda import scores
from stream_cgzsl.serving.generation import Generation

OLD = 0.3
"""What D keeps of its weights from window to window; the rest is fresh."""

TIMID = 0.1
"""Of Xavier's deviation, for D's last layer: exactly 0 would never learn."""

HIDDEN = 4
"""One seen class in this many is hidden from a second D, to see how far a mean is from what D says of it."""

FEWEST = 8
"""With fewer seen classes nothing is hidden, and the variance is 1: D is not believed more than one example."""

LEAST_VARIANCE = 0.05

TRUSTED = 0.7
"""Networks are trained on classes whose own examples decide at least so far; others are described classes to them."""


@dataclass(frozen=True)
class AdversarialOptions(NetworkOptions):
    """Constants that were compared on CUB and BANKING77."""

    hidden: int = 512
    learning_rate: float = 1e-3
    max_iterations: int = 100  # steps of each window's training
    scale: float = 25.0
    neighbours: int = 4
    gan: float = 0.02
    rcl: float = 0.1  # three times that in a shared space
    snl: float = 0.001
    moments: float = 10.0  # two more losses of G: first and second moments of what it generates
    replay: int = 300
    replay_even: bool = True  # at most as many of each class as the window's classes have on average
    calibrate: bool = True

    @property
    def at_least_one(self) -> tuple[str, ...]:
        return ("max_iterations",)

    def weights_in(self, shared: bool) -> dict[str, float]:
        """By loss term."""
        rcl = 3 * self.rcl if shared else self.rcl
        return {**self.weights, "rcl": rcl, "first_moment": self.moments, "second_moment": self.moments}


class PriorProjector(Projector):
    """D, and how far true class means are from what it says: the variance of D(a) as a prior of a class mean."""

    def __init__(self, attributes: int, hidden: int, features: int, rng: torch.Generator, gain: float) -> None:
        super().__init__(attributes, hidden, features, "linear", rng, gain)
        self.variance = nn.Parameter(torch.ones(()), requires_grad=False)

    def load(self, prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """As `TwoLayers.load`; snapshots of older versions have no variance, which is then 1."""
        super().load(prefix, {f"{prefix}.variance": np.ones((), np.float32), **arrays})


class AdversarialTraining:
    """Fresh optimisers and the step. G is stepped every second time."""

    def __init__(self, networks: Networks, classes: WhitenedClasses, options: AdversarialOptions) -> None:
        self.g, self.d = networks
        self.classes = classes
        self.options = options
        self.weights = options.weights_in(classes.inputs.prior is not None)
        self.optimise_g = torch.optim.AdamW(self.g.parameters(), lr=options.learning_rate, fused=True)
        self.optimise_d = torch.optim.AdamW(self.d.parameters(), lr=options.learning_rate, fused=True)
        self.projections = classes.inputs.through(self.d)  # [C, F]; from here on always those of the newest D

    def slow_down(self, done: float) -> None:
        """The learning rate once this share of the steps is done: constant for half of them, then linear to 0."""
        for group in (*self.optimise_g.param_groups, *self.optimise_d.param_groups):
            group["lr"] = self.options.learning_rate * min(1.0, 2 * (1 - done))

    def step(self, x: Tensor, y: Tensor, unseen: Tensor, z: Tensor, move_g: bool) -> dict[str, Tensor]:
        """x: [n, F] of length 1, y: [n] seen classes, unseen: [u] unseen classes, z: [2n + u, A] noise."""
        k, c, n, seen, u = self.options.scale, self.classes, len(x), self.classes.places.seen, len(unseen)
        with torch.set_grad_enabled(move_g):
            made = torch.cat((y, unseen, y) if move_g else (y, unseen))  # [2n + u] or [n + u]
            fake = c.inputs[made].through(self.g, z[: len(made)])  # [2n + u, F] or [n + u, F]
            x_seen, x_unseen = torch.split(losses.unit(fake[: n + u]), [n, u])  # [n, F], [u, F]

        p, s = self.projections, losses.unit(self.projections)  # [C, F]
        on_d = {
            "gan_d": losses.gan_projector(x, y, x_seen, y, s, signed=True),
            "rcl": losses.rcl(x, y, s[:seen], k),
            "nuclear": losses.nuclear(p[:seen], c.means),
        }
        if u:
            on_d["snl"] = losses.snl(x_unseen, unseen, s, k)
        descend(self.optimise_d, on_d, self.weights)
        self.projections = c.inputs.through(self.d)  # [C, F]: for G now, and for D's next step
        if not move_g:
            return on_d

        s = losses.unit(self.projections.detach())  # [C, F]
        fake_means = c.inputs.through(self.g, torch.zeros_like(c.inputs.attributes))  # [C, F]
        one, other = fake[:n], fake[n + u :]  # [n, F], [n, F]: two draws of the same classes
        on_g = {
            "gan_g": losses.gan_generator_non_saturating(x_seen, y, s, signed=True),
            "pcl": losses.pcl(x_seen, y, s[:seen], k),
            "sal": losses.sal(fake_means, c.near, c.similarity, c.nearness, self.options.tolerance),
            "first_moment": losses.first_moment(one, other, c.means[y]),
            "second_moment": losses.second_moment(one, other, c.variance),
        }
        descend(self.optimise_g, on_g, self.weights)
        return on_d | on_g


class Adversarial(NetworkLearner):
    """G and D live where features vary alike in every direction and class means have length 1; both are linear there.

    The whitening is symmetric, so that their coordinates hardly move when the statistics do.
    """

    name = "adversarial"
    options: AdversarialOptions

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(AdversarialOptions, options, self.name)
        self._spaces = SpaceCache(self.device, symmetric=True)

    def _untrained(self, rng: torch.Generator) -> Networks:
        sizes = self.space.attributes, self.options.hidden, self.space.features
        gain = self.space.features**-0.5
        g, d = Generator(*sizes, "linear", rng, gain), PriorProjector(*sizes, rng, gain)
        with torch.no_grad():
            d.w2.mul_(TIMID)
        return g, d

    def _rows_a_class(self, lesson: Lesson) -> int:
        given = [len(examples.rows) for examples in lesson.window.features.values()]
        even = -(-sum(given) // len(given))
        return min(self.options.replay, even) if self.options.replay_even else self.options.replay

    def _draw(self, networks: Networks, statistics: ClassStatistics, rng: torch.Generator) -> Draw:
        space = self._spaces.get(statistics, decide_shared(statistics).shared)
        inputs, back = Inputs.of(space), published_directions(space)
        centre = space.centre.to(torch.float32)

        def draw(labels: Tensor) -> Tensor:
            x = inputs[labels].through(networks[0], noise(len(labels), inputs.attributes, rng))
            return losses.unit(x @ back + centre)

        return draw

    def _generate(
        self, networks: Networks, before: ClassStatistics, classes: Tensor, rows: int, rng: torch.Generator
    ) -> Replay:
        space = self._spaces.get(before, decide_shared(before).shared)
        answers = head(projected(space, before, networks[1])[classes], space.signal)
        vectors, biases = published_vectors(space, answers).to(torch.float32), answers.biases.to(torch.float32)
        centre = space.centre.to(torch.float32)

        def classify(x: Tensor) -> Tensor:
            return classes[scores(x, vectors, biases, centre).argmax(1)]

        return replay(classes, rows, self._draw(networks, before, rng), classify)

    def _optimise(
        self, lesson: Lesson, withheld: Withheld, replayed: Replay, networks: Networks | None, monitor: Monitor
    ) -> Networks:
        o, statistics, number = self.options, withheld.statistics, lesson.window.number
        g, d = self._on_device(self._untrained(self._rng(number, "networks")))
        assert isinstance(d, PriorProjector)
        if networks is not None:
            d.blend(networks[1], 1 - OLD)
            g = networks[0]
        space = self._spaces.get(statistics, decide_shared(lesson.after).shared)
        d.variance.data.fill_(self._hidden_variance(space, statistics, number, monitor))
        fresh = real(withheld.trained, statistics.class_ids, statistics.transform, self.device)
        rows = mixed(fresh, replayed.rows)
        trusted = decided(space, statistics, d) >= TRUSTED
        known = torch.zeros_like(space.seen)
        known[space.seen] = trusted
        if int(trusted.sum()) >= FEWEST and bool(known[rows.y].any()):
            space = replace(space, seen=known, means=space.means[trusted], offsets=space.offsets[trusted])
            rows = Rows(rows.x[known[rows.y]], rows.y[known[rows.y]])
        classes = WhitenedClasses(space, o.neighbours)
        rows = classes.places.placed(rows)
        rows = Rows(losses.unit(into_space(space, rows.x)), rows.y)
        training = AdversarialTraining((g, d), classes, o)
        balanced = Balanced(rows.y)
        rng = self._rng(number, "batches")
        for step in range(1, o.max_iterations + 1):
            monitor.check()
            training.slow_down((step - 1) / o.max_iterations)
            batch = balanced.draw(o.batch, rng)
            unseen = classes.places.draw_unseen(o.unseen_batch, rng)
            z = noise(2 * len(batch) + len(unseen), classes.inputs.attributes, rng)
            terms = training.step(rows.x[batch], rows.y[batch], unseen, z, move_g=step % 2 == 1)
            if step % PROGRESS_EVERY == 1 or step == o.max_iterations:
                losses_now = {name: term.item() for name, term in terms.items()}
                monitor.progress(Progress(step, o.max_iterations, losses_now))
        return g, d

    def _hidden_variance(
        self, space: WhitenedSpace, statistics: ClassStatistics, number: int, monitor: Monitor
    ) -> float:
        """How far true means are from D(a), squared, in squared lengths of a mean: for classes hidden from D."""
        inputs, means, seen = Inputs.of(space)[space.seen], space.means.to(torch.float32), len(space.means)
        if seen < FEWEST:
            return 1.0
        rng, o = self._rng(number, "hidden"), self.options
        order = torch.randperm(seen, generator=rng).to(self.device)
        hidden, kept = order[: seen // HIDDEN], order[seen // HIDDEN :]
        error = mean_noise(space, statistics).to(torch.float32)  # [seen]
        weights = 1 / (1 + error)  # means of few examples say little
        d = self._on_device(self._untrained(rng))[1]
        optimiser = torch.optim.AdamW(d.parameters(), lr=o.learning_rate, fused=True)
        for step in range(o.max_iterations):
            monitor.check()
            optimiser.param_groups[0]["lr"] = o.learning_rate * min(1.0, 2 * (1 - step / o.max_iterations))
            term = losses.weighted_nuclear(inputs[kept].through(d), means[kept], weights[kept])
            descend(optimiser, {"nuclear": term}, {"nuclear": 1.0})
        with torch.no_grad():
            residual = (means[hidden] - inputs[hidden].through(d)).square().sum(1) - error[hidden]
        return max(float((weights[hidden] * residual).sum() / weights[hidden].sum()), LEAST_VARIANCE)

    def _scorer(self, statistics: ClassStatistics, networks: Networks) -> Scorer:
        space = self._spaces.get(statistics, decide_shared(statistics).shared)
        return scorer(space, head(projected(space, statistics, networks[1]), space.signal), statistics.transform)

    def _publish(self, number: int, statistics: ClassStatistics, shared: SharedSpace, memory: Snapshot) -> Generation:
        networks = self._networks_in(memory)
        assert networks is not None, "a class is seen only after a window was trained"
        space = self._spaces.get(statistics, shared.shared)
        weights, biases = head(projected(space, statistics, networks[1]), space.signal)
        share = decided(space, statistics, networks[1])
        biases[space.seen] -= self._offset(memory) * (share / share.max()).square()
        calibration = {**shared.record(), **self._record(memory)}
        return publish(number, statistics, space, Head(weights, biases), 0.0, calibration)


def projected(space: WhitenedSpace, statistics: ClassStatistics, d: Projector) -> Tensor:
    """[classes, features] float64: what D says of an unseen class; of a seen one, between that and its mean."""
    with torch.no_grad():
        projections = Inputs.of(space).through(d).to(torch.float64)
    share = decided(space, statistics, d)[:, None]
    projections[space.seen] += share * (space.means - projections[space.seen])
    return projections


def decided(space: WhitenedSpace, statistics: ClassStatistics, d: Projector) -> Tensor:
    """[seen] float64: how far a class's own examples decide where its mean is, v / (v + noise / n)."""
    variance = float(d.variance) if isinstance(d, PriorProjector) else 1.0
    return variance / (variance + mean_noise(space, statistics))


def mean_noise(space: WhitenedSpace, statistics: ClassStatistics) -> Tensor:
    """[seen] float64: the expected squared error of each class mean, in squared lengths of a mean."""
    counts = torch.from_numpy(statistics.counts).to(space.means.device)
    noise: Tensor = min(space.whitening.spread / max(space.radius**2, 1e-12), MOST_VARIANCE) / counts
    return noise
