"""The paper's system. Its training step is `Training.step`; the losses are in `losses.py`, with their equations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.learners.calibration.held_out import Scorer
from stream_cgzsl.learners.calibration.prequential import Withheld
from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.base import Draw, NetworkLearner, NetworkOptions, Networks
from stream_cgzsl.learners.gan.batches import SeenFirst, shuffled
from stream_cgzsl.learners.gan.networks import Generator, Projector, noise
from stream_cgzsl.learners.gan.replay import Replay, mixed, real, replay
from stream_cgzsl.learners.interface import Monitor, Progress, Snapshot, Space
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.learner import Lesson
from stream_cgzsl.learners.statistics.shared_space import SharedSpace
from stream_cgzsl.serving.generation import Generation

PROGRESS_EVERY = 10
"""Iterations between two progress reports."""


@dataclass(frozen=True)
class PaperOptions(NetworkOptions):
    """As printed."""

    weight_decay: float = 1e-5
    epochs: int = 50


class Training:
    """One window's training: fresh optimisers, and the step."""

    def __init__(self, networks: Networks, classes: Classes, options: PaperOptions) -> None:
        self.g, self.d = networks
        self.classes = classes
        self.options = options
        self.weights = options.weights
        self.optimise_g, self.optimise_d = (
            torch.optim.Adam(n.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay, fused=True)
            for n in networks
        )
        self.projections: Tensor = self.d(classes.attributes)  # [C, F]; from here on always those of the newest D

    def step(self, x: Tensor, y: Tensor, unseen: Tensor, z: Tensor) -> dict[str, Tensor]:
        """x: [n, F] of length 1, y: [n] seen classes, unseen: [u] unseen classes, z: [n + u, A] noise."""
        k, c, n, seen = self.options.scale, self.classes, len(x), self.classes.places.seen
        made = torch.cat((y, unseen))  # [n + u]
        fake = self.g.generate(z, c.attributes[made])  # [n + u, F]
        x_seen, x_unseen = torch.split(losses.unit(fake), [n, len(unseen)])  # [n, F], [u, F]

        p, s = self.projections, losses.unit(self.projections)  # [C, F]
        on_d = {
            "gan_d": losses.gan_projector(x, y, x_seen, y, s, c.signed),
            "rcl": losses.rcl(x, y, s[:seen], k),
            "nuclear": losses.nuclear(p[:seen], c.means),  # printed in G's loss, where nothing depends on it
        }
        if len(unseen):
            on_d["snl"] = losses.snl(x_unseen, unseen, s, k)
        descend(self.optimise_d, on_d, self.weights)

        self.projections = self.d(c.attributes)  # [C, F]: for G now, and for D's next step
        s = losses.unit(self.projections.detach())  # [C, F]
        i, fake_means = class_means(fake, made)  # [m] the classes in the batch, [m, F]
        on_g = {
            "gan_g": losses.gan_generator(x_seen, y, s, c.signed),
            "pcl": losses.pcl(x_seen, y, s[:seen], k),
            "sal": losses.sal(fake_means, c.near[i], c.similarity[i], c.nearness[i], self.options.tolerance),
        }
        descend(self.optimise_g, on_g, self.weights)
        return on_d | on_g


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a window for training, in the order of `places`."""

    places: SeenFirst
    attributes: Tensor  # [classes, attributes], of length 1
    means: Tensor  # [seen, features]
    near: Tensor  # [classes, n, features]: the means of the n nearest seen classes, of length 1
    similarity: Tensor  # [classes, n]: attribute cosines with them
    nearness: Tensor  # [classes, n]: 1, or 0 where there are fewer
    signed: bool

    @classmethod
    def of(cls, statistics: ClassStatistics, neighbours: int, device: torch.device) -> Classes:
        places = SeenFirst.of(torch.from_numpy(statistics.seen).to(device))
        attributes = attributes_of(statistics, device)[places.order]
        means = torch.from_numpy(statistics.means).to(device, torch.float32)
        positions, similarity, nearness = losses.neighbours(attributes, places.seen, neighbours)
        near = losses.unit(means)[positions]
        return cls(places, attributes, means, near, similarity, nearness, statistics.space.signed)


def attributes_of(statistics: ClassStatistics, device: torch.device) -> Tensor:
    """[classes, attributes] float32 at length 1."""
    return losses.unit(torch.from_numpy(statistics.attributes).to(device, torch.float32))


class Paper(NetworkLearner):
    """G and D of the paper, with its losses, constants and replay, on published features of length 1.

    One thing is not printed: the seen offset from calibration, which is 0 without `calibrate`.
    """

    name = "paper"
    options: PaperOptions

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(PaperOptions, options, self.name)

    def _untrained(self, rng: torch.Generator) -> Networks:
        sizes = self.space.attributes, self.options.hidden, self.space.features
        g, d = ("linear", "linear") if self.space.signed else ("sigmoid", "relu")
        size = self.space.features**-0.5  # size of a number in a feature of length 1; without it, D's units die
        return Generator(*sizes, g, rng, 2 * size), Projector(*sizes, d, rng, size)

    def _draw(self, networks: Networks, statistics: ClassStatistics, rng: torch.Generator) -> Draw:
        attributes = attributes_of(statistics, self.device)

        def draw(labels: Tensor) -> Tensor:
            return losses.unit(networks[0].generate(noise(len(labels), attributes, rng), attributes[labels]))

        return draw

    def _generate(
        self, networks: Networks, before: ClassStatistics, classes: Tensor, rows: int, rng: torch.Generator
    ) -> Replay:
        s = losses.unit(networks[1](attributes_of(before, self.device)[classes])).detach()  # [seen, features]
        return replay(classes, rows, self._draw(networks, before, rng), lambda x: classes[(x @ s.T).argmax(1)])

    def _optimise(
        self, lesson: Lesson, withheld: Withheld, replayed: Replay, networks: Networks | None, monitor: Monitor
    ) -> Networks:
        o, statistics, number = self.options, withheld.statistics, lesson.window.number
        networks = networks or self._on_device(self._untrained(self._rng(number, "networks")))
        classes = Classes.of(statistics, o.neighbours, self.device)
        fresh = real(withheld.trained, statistics.class_ids, statistics.transform, o.rows, self.device)
        rows = classes.places.placed(mixed(fresh, replayed.rows))
        training = self._training(networks, classes)
        rng = self._rng(number, "batches")
        batches = shuffled(len(rows), o.batch, rng)
        steps = min(o.epochs * -(-len(rows) // o.batch), o.max_iterations)
        for step in range(1, steps + 1):
            monitor.check()
            batch = next(batches).to(self.device)
            unseen = classes.places.draw_unseen(o.unseen_batch, rng)
            z = noise(len(batch) + len(unseen), classes.attributes, rng)
            terms = training.step(rows.x[batch], rows.y[batch], unseen, z)
            if step % PROGRESS_EVERY == 0 or step == steps:
                monitor.progress(Progress(step, steps, {name: term.item() for name, term in terms.items()}))
        return networks

    def _training(self, networks: Networks, classes: Classes) -> Training:
        return Training(networks, classes, self.options)

    def _scorer(self, statistics: ClassStatistics, networks: Networks) -> Scorer:
        return self._generation_of(0, statistics, networks, 0.0, {}).scores

    def _publish(self, number: int, statistics: ClassStatistics, shared: SharedSpace, memory: Snapshot) -> Generation:
        networks = self._networks_in(memory)
        assert networks is not None, "a class is seen only after a window was trained"
        calibration = {**shared.record(), **self._record(memory)}
        return self._generation_of(number, statistics, networks, self._offset(memory), calibration)

    def _generation_of(
        self,
        number: int,
        statistics: ClassStatistics,
        networks: Networks,
        offset: float,
        calibration: Mapping[str, Any],
    ) -> Generation:
        with torch.no_grad():
            vectors = losses.unit(networks[1](attributes_of(statistics, self.device)))
        return Generation(
            number=number,
            class_ids=statistics.class_ids,
            seen=statistics.seen,
            vectors=vectors.cpu().numpy(),
            biases=-offset * statistics.seen.astype(np.float32),
            centre=np.zeros(self.space.features, np.float32),
            metric="cosine",
            transform=statistics.transform,
            calibration=calibration,
        )


def descend(optimiser: torch.optim.Optimizer, terms: Mapping[str, Tensor], weights: Mapping[str, float]) -> None:
    """One optimiser step on the weighted sum of the terms; none where every weight is 0."""
    weighted = [weights[name] * term for name, term in terms.items() if weights[name]]
    if weighted:
        optimiser.zero_grad()
        torch.stack(weighted).sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def class_means(x: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct classes among [rows] and the mean of each one's rows: [m], [m, features]."""
    distinct, index = torch.unique(classes, return_inverse=True)
    members = F.one_hot(index, len(distinct)).T.to(x.dtype)  # [m, rows]
    return distinct, (members / members.sum(1, keepdim=True)) @ x
