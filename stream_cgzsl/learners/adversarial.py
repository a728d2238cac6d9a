"""The paper's system made to work: the same networks, losses and replay in the standardised feature space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from stream_cgzsl.generation import Generation
from stream_cgzsl.learners import losses
from stream_cgzsl.learners.base import Lesson
from stream_cgzsl.learners.batches import Balanced, Rows
from stream_cgzsl.learners.closed_form import scorer
from stream_cgzsl.learners.evidence import Scorer
from stream_cgzsl.learners.interface import Monitor, Progress, Snapshot, Space
from stream_cgzsl.learners.networked import Draw, NetworkLearner, Networks
from stream_cgzsl.learners.networks import Generator, Projector, noise
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.prequential import Withheld
from stream_cgzsl.learners.projection import head
from stream_cgzsl.learners.publication import publish
from stream_cgzsl.learners.replay import Replay, mixed, real, replay
from stream_cgzsl.learners.shared import Shared, decide_shared
from stream_cgzsl.learners.standard import Standard
from stream_cgzsl.learners.standard_classes import Inputs, StandardClasses, published_directions, standardised
from stream_cgzsl.learners.standard_training import AdversarialOptions, StandardTraining
from stream_cgzsl.learners.standardising import StandardisingLearner
from stream_cgzsl.learners.statistics import Statistics
from stream_cgzsl.learners.training import EVERY

OLD = 0.3
"""What D keeps of its weights from window to window; the rest is fresh."""

TIMID = 0.1
"""Of Xavier's deviation, for D's last layer: exactly 0 would never learn."""


class Adversarial(NetworkLearner, StandardisingLearner):
    """G and D live where features vary alike in every direction and class means have length 1; both are linear there.

    The whitening is symmetric, so that their coordinates hardly move when the statistics do.
    """

    name = "adversarial"
    symmetric = True
    options: AdversarialOptions

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(AdversarialOptions, options, self.name)

    def _fresh(self, rng: torch.Generator) -> Networks:
        sizes = self.space.attributes, self.options.hidden, self.space.features
        gain = self.space.features**-0.5
        g, d = Generator(*sizes, "linear", rng, gain), Projector(*sizes, "linear", rng, gain)
        with torch.no_grad():
            d.w2.mul_(TIMID)
        return g, d

    def _draw(self, networks: Networks, statistics: Statistics, rng: torch.Generator) -> Draw:
        standard = self._standard(statistics, decide_shared(statistics).shared)
        inputs, back = Inputs.of(standard), published_directions(standard)
        centre = standard.centre.to(torch.float32)

        def draw(labels: Tensor) -> Tensor:
            x = inputs[labels].through(networks[0], noise(len(labels), inputs.attributes, rng))
            return losses.unit(x @ back + centre)

        return draw

    def _generate(
        self, networks: Networks, before: Statistics, classes: Tensor, rows: int, rng: torch.Generator
    ) -> Replay:
        standard = self._standard(before, decide_shared(before).shared)
        answers = head(projected(standard, networks[1])[classes], standard.signal)
        vectors = (standard.whitening.gain * standard.whitening.out_of(answers.weights)).to(torch.float32)
        biases = answers.biases.to(torch.float32)
        centre = standard.centre.to(torch.float32)

        def classify(x: Tensor) -> Tensor:
            return classes[(losses.unit(x - centre) @ vectors.T + biases).argmax(1)]

        return replay(classes, rows, self._draw(networks, before, rng), classify)

    def _optimise(
        self, lesson: Lesson, withheld: Withheld, replayed: Replay, networks: Networks | None, monitor: Monitor
    ) -> Networks:
        o, statistics, number = self.options, withheld.statistics, lesson.window.number
        g, d = self._placed(self._fresh(self._rng(number, "networks")))
        if networks is not None:
            d.blend(networks[1], 1 - OLD)
            g = networks[0]
        standard = self._standard(statistics, decide_shared(lesson.after).shared)
        classes = StandardClasses(standard, o.neighbours)
        fresh = real(withheld.trained, statistics.class_ids, statistics.transform, o.rows, self.device)
        rows = classes.places.placed(mixed(fresh, replayed.rows))
        rows = Rows(losses.unit(standardised(standard, rows.x)), rows.y)
        training = StandardTraining((g, d), classes, o)
        balanced = Balanced(rows.y)
        rng = self._rng(number, "batches")
        for step in range(1, o.max_iterations + 1):
            monitor.check()
            training.slow_down((step - 1) / o.max_iterations)
            batch = balanced.draw(o.batch, rng)
            unseen = classes.places.draw_unseen(o.unseen_batch, rng)
            z = noise(2 * len(batch) + len(unseen), classes.inputs.attributes, rng)
            terms = training.step(rows.x[batch], rows.y[batch], unseen, z, move_g=step % 2 == 1)
            if step % EVERY == 1 or step == o.max_iterations:
                losses_now = {name: term.item() for name, term in terms.items()}
                monitor.progress(Progress(step, o.max_iterations, losses_now))
        return g, d

    def _scorer(self, statistics: Statistics, networks: Networks) -> Scorer:
        standard = self._standard(statistics, decide_shared(statistics).shared)
        return scorer(standard, head(projected(standard, networks[1]), standard.signal), statistics.transform)

    def _publish(self, number: int, statistics: Statistics, shared: Shared, memory: Snapshot) -> Generation:
        networks = self._remembered(memory)
        assert networks is not None, "a class is seen only after a window was trained"
        standard = self._standard(statistics, shared.shared)
        answers = head(projected(standard, networks[1]), standard.signal)
        return publish(
            number, statistics, standard, answers, self._offset(memory), {**shared.record(), **self._record(memory)}
        )


def projected(standard: Standard, d: Projector) -> Tensor:
    """D of every class: [classes, features] float64."""
    with torch.no_grad():
        return Inputs.of(standard).through(d).to(torch.float64)
