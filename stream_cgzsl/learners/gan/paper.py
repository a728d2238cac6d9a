"""The paper's system as printed. Its training step is `Training.step`; `losses.py` has the losses and their equations.

docs/method.md has a table of what is printed, what is from the published code, and what is our choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stream_cgzsl.learners.calibration.curves import Prior
from stream_cgzsl.learners.calibration.held_out import Scorer
from stream_cgzsl.learners.calibration.prequential import Withheld
from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.base import Draw, NetworkLearner, NetworkOptions, Networks
from stream_cgzsl.learners.gan.batches import shuffled
from stream_cgzsl.learners.gan.classes import Classes, attributes_of, class_means, means_in, means_with, remembered
from stream_cgzsl.learners.gan.networks import Generator, Projector, noise
from stream_cgzsl.learners.gan.replay import Replay, mixed, real, replay
from stream_cgzsl.learners.interface import Monitor, Progress, Snapshot, Space
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.features import transform_of
from stream_cgzsl.learners.statistics.learner import Lesson
from stream_cgzsl.learners.statistics.shared_space import SharedSpace
from stream_cgzsl.serving.generation import Generation

PROGRESS_EVERY = 10
"""Iterations between two progress reports."""


COSINES = Prior(0.05, 0.05)
"""Of the seen offset: cosines of a feature with the projections differ by less than scores in a whitened space."""


@dataclass(frozen=True)
class PaperOptions(NetworkOptions):
    """As printed. What helps and is not printed: `calibrate`, `scale` and `rescale`."""

    weight_decay: float = 1e-5
    epochs: int = 50  # passes over the window's rows and the replayed ones
    rescale: bool = False  # square roots of non-negative features, and numbers of about 1: L_nuclear then counts alike

    @property
    def at_least_one(self) -> tuple[str, ...]:
        return ("epochs",)


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

    def step(self, x: Tensor, y: Tensor, unseen: Tensor, rng: torch.Generator) -> dict[str, Tensor]:
        """x: [n, F] of length 1, y: [n] seen classes, unseen: [u] unseen classes, rng: of G's noise."""
        k, c, n, u = self.options.scale, self.classes, len(x), len(unseen)
        seen = c.places.seen
        batch = torch.cat((y, unseen))  # [n + u]
        made = torch.cat((batch, c.others(batch)))  # [m]: L_sal asks for a feature of each class
        fake = self.g.generate(noise(len(made), c.attributes, rng), c.attributes[made])  # [m, F]
        x_seen, x_unseen = torch.split(losses.unit(fake[: n + u]), [n, u])  # [n, F], [u, F]

        p, s = self.projections, losses.unit(self.projections)  # [C, F], [C, F]
        on_d = {
            "gan_d": losses.gan_projector(x, y, x_seen, y, s, c.signed),
            "rcl": losses.rcl(x, y, s[:seen], k),
            "nuclear": losses.nuclear(p[:seen], c.means),  # printed in G's loss, where nothing depends on it
        }
        if u:
            on_d["snl"] = losses.snl(x_unseen, unseen, s, k)
        descend(self.optimise_d, on_d, self.weights)

        self.projections = self.d(c.attributes)  # [C, F]: for G now, and for D's next step
        s = losses.unit(self.projections.detach())  # [C, F]
        _, fake_means = class_means(fake, made)  # [C, F]
        on_g = {
            "gan_g": losses.gan_generator(x_seen, y, s, c.signed),
            "pcl": losses.pcl(x_seen, y, s[:seen], k),
            "sal": losses.sal(fake_means, c.near, c.similarity, c.nearness, self.options.tolerance),
        }
        descend(self.optimise_g, on_g, self.weights)
        return on_d | on_g


class Paper(NetworkLearner):
    """G and D of the paper, with its losses, constants and replay, on features as they come."""

    name = "paper"
    kind: type[PaperOptions] = PaperOptions
    prior = COSINES
    options: PaperOptions

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(self.kind, options, self.name)

    @property
    def _transform(self) -> str:
        return transform_of(self.space.signed) if self.options.rescale else "none"

    def _untrained(self, rng: torch.Generator) -> Networks:
        sizes = self.space.attributes, self.options.hidden, self.space.features
        g, d = ("linear", "linear") if self.space.signed else ("sigmoid", "relu")
        return Generator(*sizes, g, rng), Projector(*sizes, d, rng)

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

    def _remembered(self, lesson: Lesson) -> Snapshot:
        return remembered(self._means(lesson, lesson.window.features))

    def _means(self, lesson: Lesson, examples: Mapping[str, Any]) -> dict[str, Any]:
        return means_with(lesson.before, means_in(self._memory), examples, self.options.rescale)

    def _optimise(
        self, lesson: Lesson, withheld: Withheld, replayed: Replay, networks: Networks | None, monitor: Monitor
    ) -> Networks:
        o, statistics, number = self.options, withheld.statistics, lesson.window.number
        networks = networks or self._on_device(self._untrained(self._rng(number, "networks")))
        classes = Classes.of(statistics, self._means(lesson, withheld.trained), o.neighbours, self.device)
        fresh = real(withheld.trained, statistics.class_ids, self._transform, self.device)
        rows = classes.places.placed(mixed(fresh, replayed.rows))
        training = self._training(networks, classes)
        rng = self._rng(number, "batches")
        batches = shuffled(len(rows), o.batch, rng)
        steps = o.epochs * -(-len(rows) // o.batch)
        for step in range(1, steps + 1):
            monitor.check()
            batch = next(batches).to(self.device)
            unseen = classes.places.draw_unseen(o.unseen_batch, rng)
            terms = training.step(rows.x[batch], rows.y[batch], unseen, rng)
            if step % PROGRESS_EVERY == 0 or step == steps:
                monitor.progress(Progress(step, steps, {name: term.item() for name, term in terms.items()}))
        return networks

    def _training(self, networks: Networks, classes: Classes) -> Training:
        return Training(networks, classes, self.options)

    def _networks_in(self, memory: Snapshot) -> Networks | None:
        networks = super()._networks_in(memory)
        if networks is not None and "means" not in memory.arrays:
            raise ValueError(f"the snapshot is of an older {self.name}, without means of features as they come")
        return networks

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
            transform=self._transform,
            calibration=calibration,
        )


def descend(
    optimiser: torch.optim.Optimizer, terms: Mapping[str, Tensor], weights: Mapping[str, float], onto: bool = False
) -> None:
    """One optimiser step on the weighted sum of the terms; none where every weight is 0.

    `onto`: gradients are added to those of the step before.
    """
    weighted = [weights[name] * term for name, term in terms.items() if weights[name]]
    if weighted:
        if not onto:
            optimiser.zero_grad()
        torch.stack(weighted).sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
