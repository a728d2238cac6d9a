"""The base of the systems for comparison: a window has all of its effect or none, and snapshots."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.errors import TrainingFailed, UsageError
from stream_cgzsl.learners.baselines.roster import Roster
from stream_cgzsl.learners.baselines.rows import Rows
from stream_cgzsl.learners.interface import SILENT, Learner, Monitor, Progress, Snapshot, Space, empty_vectors
from stream_cgzsl.learners.numerics.randomness import generator
from stream_cgzsl.learners.snapshots import apart, together
from stream_cgzsl.runtime.devices import choose_device
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.window import Examples, Window

NOTHING = Snapshot({}, {})

PROGRESS_EVERY = 20
"""Steps between two progress reports."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """A window to train on, with at least one row. `before` has its descriptions but not its features, `after` both."""

    number: int
    before: Roster
    after: Roster
    examples: Mapping[str, Examples]
    rows: Rows  # the same ones


class Baseline(Learner):
    """Keeps the roster of classes and a memory of its own: arrays and JSON-ready values.

    A subclass computes the next memory from a window (`_train`) and a generation from roster and memory (`_publish`).
    Both are pure; their results are kept only when all of them are complete and finite.
    """

    def __init__(self, space: Space, device: str = "cpu") -> None:
        self.space = space
        self.device = torch.device(choose_device(device))
        self._roster = Roster.empty(space)
        self._memory = NOTHING

    @abstractmethod
    def _train(self, lesson: Lesson, memory: Snapshot, monitor: Monitor) -> Snapshot:
        """The memory after the lesson; `memory` is the one before it, empty at first."""

    @abstractmethod
    def _publish(self, number: int, roster: Roster, memory: Snapshot) -> Generation:
        """Called when at least one class is seen. Depends on the number in nothing but the generation's own."""

    def _forget(self, memory: Snapshot, retired: Collection[str]) -> Snapshot:  # noqa: ARG002
        """The memory without what it keeps of retired classes alone."""
        return memory

    def fit(self, window: Window, monitor: Monitor = SILENT) -> Generation:
        monitor.check()
        before = self._roster.after_descriptions(window)
        after = before.after_features(window)
        memory = self._forget(self._memory, window.retired)
        rows = Rows.of(window.features, after.class_ids, self.space.features, self.device)
        if len(rows):
            memory = self._train(Lesson(window.number, before, after, window.features, rows), memory, monitor)
        generation = self._generation(window.number, after, memory)
        monitor.check()
        self._roster, self._memory = after, memory
        return generation

    def describe(self, window: Window) -> Generation:
        if window.features:
            raise UsageError(f"window {window.number} has features: it must be fitted, not only described")
        roster = self._roster.after_descriptions(window)
        memory = self._forget(self._memory, window.retired)
        generation = self._generation(window.number, roster, memory)
        self._roster, self._memory = roster, memory
        return generation

    def _generation(self, number: int, roster: Roster, memory: Snapshot) -> Generation:
        generation = self._publish(number, roster, memory) if roster.seen.any() else unlearned(number, roster)
        finite = [np.isfinite(array).all() for array in (generation.vectors, generation.biases)]
        if not all([*finite, *(np.isfinite(array).all() for array in memory.arrays.values())]):
            raise TrainingFailed(
                f"window {number}: learner {self.name!r} computed numbers that are not finite; "
                "the window was not learned"
            )
        return replace(generation, examples=roster.examples)

    def snapshot(self) -> Snapshot:
        return together(self.name, self.space, {"roster": self._roster.snapshot(), "memory": self._memory})

    def restore(self, snapshot: Snapshot) -> None:
        parts = apart(self.name, self.space, snapshot)
        self._roster = Roster.restore(self.space, parts["roster"])
        self._memory = parts["memory"]

    def _rng(self, number: int, purpose: str) -> torch.Generator:
        return generator(self.space.seed, number, purpose)

    def _attributes(self, roster: Roster) -> Tensor:
        """[classes, attributes] at length 1, as the authors' data sets have them."""
        return unit_attributes(torch.from_numpy(roster.attributes).to(self.device))


def unit_attributes(attributes: Tensor) -> Tensor:
    """At length 1, whatever their scale; zeros stay zero."""
    largest = attributes.abs().amax(1, keepdim=True)
    return F.normalize(attributes / largest.clamp_min(torch.finfo(attributes.dtype).tiny), dim=1)


class Steps:
    """Counts training steps for a monitor, and asks it at each whether to go on."""

    def __init__(self, monitor: Monitor, steps: int) -> None:
        self._monitor = monitor
        self._steps = steps
        self._step = 0

    def begin(self) -> None:
        self._monitor.check()
        self._step += 1

    def end(self, losses: Mapping[str, Tensor]) -> None:
        if self._step % PROGRESS_EVERY == 0 or self._step == self._steps:
            last = {name: loss.item() for name, loss in losses.items()}
            self._monitor.progress(Progress(min(self._step, self._steps), self._steps, last))


def unlearned(number: int, roster: Roster) -> Generation:
    """Before the first example nothing can be told apart."""
    classes = len(roster.class_ids)
    return Generation(
        number=number,
        class_ids=roster.class_ids,
        seen=roster.seen,
        vectors=empty_vectors(classes, roster.space.features),
        biases=np.zeros(classes, np.float32),
        centre=np.zeros(roster.space.features, np.float32),
        servable=False,
    )
