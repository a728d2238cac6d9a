"""The paper's system as it is printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stream_cgzsl.generation import Generation
from stream_cgzsl.learners import losses
from stream_cgzsl.learners.base import Lesson
from stream_cgzsl.learners.batches import shuffled
from stream_cgzsl.learners.evidence import Scorer
from stream_cgzsl.learners.interface import Monitor, Progress, Snapshot, Space
from stream_cgzsl.learners.networked import Draw, NetworkLearner, Networks
from stream_cgzsl.learners.networks import Generator, Projector, noise
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.prequential import Withheld
from stream_cgzsl.learners.replay import Replay, mixed, real, replay
from stream_cgzsl.learners.shared import Shared
from stream_cgzsl.learners.statistics import Statistics
from stream_cgzsl.learners.training import EVERY, Classes, PaperOptions, Training, attributes_of


class Paper(NetworkLearner):
    """G and D of the paper, with its losses, constants and replay, on published features of length 1.

    Beyond the print there is one thing: the seen offset from evidence (`calibrate`), which without is 0.
    """

    name = "paper"
    options: PaperOptions

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(PaperOptions, options, self.name)

    def _fresh(self, rng: torch.Generator) -> Networks:
        sizes = self.space.attributes, self.options.hidden, self.space.features
        g, d = ("linear", "linear") if self.space.signed else ("sigmoid", "relu")
        size = self.space.features**-0.5  # of a number in a feature of length 1; without it, D's units die
        return Generator(*sizes, g, rng, 2 * size), Projector(*sizes, d, rng, size)

    def _draw(self, networks: Networks, statistics: Statistics, rng: torch.Generator) -> Draw:
        attributes = attributes_of(statistics, self.device)

        def draw(labels: Tensor) -> Tensor:
            return losses.unit(networks[0].generate(noise(len(labels), attributes, rng), attributes[labels]))

        return draw

    def _generate(
        self, networks: Networks, before: Statistics, classes: Tensor, rows: int, rng: torch.Generator
    ) -> Replay:
        s = losses.unit(networks[1](attributes_of(before, self.device)[classes])).detach()  # [seen, features]
        return replay(classes, rows, self._draw(networks, before, rng), lambda x: classes[(x @ s.T).argmax(1)])

    def _optimise(
        self, lesson: Lesson, withheld: Withheld, replayed: Replay, networks: Networks | None, monitor: Monitor
    ) -> Networks:
        o, statistics, number = self.options, withheld.statistics, lesson.window.number
        networks = networks or self._placed(self._fresh(self._rng(number, "networks")))
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
            if step % EVERY == 0 or step == steps:
                monitor.progress(Progress(step, steps, {name: term.item() for name, term in terms.items()}))
        return networks

    def _training(self, networks: Networks, classes: Classes) -> Training:
        return Training(networks, classes, self.options)

    def _scorer(self, statistics: Statistics, networks: Networks) -> Scorer:
        return self._generation_of(0, statistics, networks, 0.0, {}).scores

    def _publish(self, number: int, statistics: Statistics, shared: Shared, memory: Snapshot) -> Generation:
        networks = self._remembered(memory)
        assert networks is not None, "a class is seen only after a window was trained"
        calibration = {**shared.record(), **self._record(memory)}
        return self._generation_of(number, statistics, networks, self._offset(memory), calibration)

    def _generation_of(
        self, number: int, statistics: Statistics, networks: Networks, offset: float, calibration: Mapping[str, Any]
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
