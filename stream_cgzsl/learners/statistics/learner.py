"""The base of learners that keep class statistics: a window has all of its effect or none, and snapshots."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from stream_cgzsl.errors import TrainingFailed, UsageError
from stream_cgzsl.learners.interface import SILENT, Learner, Monitor, Snapshot, Space, empty_vectors
from stream_cgzsl.learners.snapshots import apart, together
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.shared_space import SharedSpace, class_vectors, decide_shared
from stream_cgzsl.runtime.devices import choose_device
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.window import Window

NOTHING = Snapshot({}, {})


@dataclass(frozen=True)
class Lesson:
    """A window to train on. `before` has its descriptions but not its features, `after` has both."""

    window: Window
    before: ClassStatistics
    after: ClassStatistics


class StatisticsLearner(Learner):
    """Keeps class statistics and a memory of its own: arrays and JSON-ready values, never an example.

    A subclass computes the next memory from a window (`_train`) and a generation from statistics and memory
    (`_publish`). Both are pure; their results are kept only when all of them are complete and finite.
    """

    def __init__(self, space: Space, device: str = "cpu") -> None:
        self.space = space
        self.device = torch.device(choose_device(device))
        self._statistics = ClassStatistics.empty(space)
        self._memory = NOTHING

    @abstractmethod
    def _train(self, lesson: Lesson, monitor: Monitor) -> Snapshot:
        """The memory after the lesson; `self._memory` is the one from before. Called also when no class is seen yet."""

    @abstractmethod
    def _publish(self, number: int, statistics: ClassStatistics, shared: SharedSpace, memory: Snapshot) -> Generation:
        """Called when at least one class is seen."""

    def fit(self, window: Window, monitor: Monitor = SILENT) -> Generation:
        monitor.check()
        before = self._statistics.after_descriptions(window)
        after = before.after_features(window, self.device, monitor.check)
        try:
            memory = self._train(Lesson(window, before, after), monitor)
            generation = self._generation(window.number, after, memory)
        except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
            raise TrainingFailed(
                f"window {window.number}: learner {self.name!r} found a matrix it cannot solve: {error}"
            ) from error
        monitor.check()
        self._statistics, self._memory = after, memory
        return generation

    def describe(self, window: Window) -> Generation:
        if window.features:
            raise UsageError(f"window {window.number} has features: it must be fitted, not only described")
        statistics = self._statistics.after_descriptions(window)
        generation = self._generation(window.number, statistics, self._memory)
        self._statistics = statistics
        return generation

    def _generation(self, number: int, statistics: ClassStatistics, memory: Snapshot) -> Generation:
        shared = decide_shared(statistics)
        if statistics.seen.any():
            generation = self._publish(number, statistics, shared, memory)
        else:
            generation = unlearned(number, statistics, shared)
        for name in ("vectors", "biases", "centre"):
            if not np.isfinite(getattr(generation, name)).all():
                raise TrainingFailed(
                    f"window {number}: learner {self.name!r} computed {name} that are not finite; "
                    "the window was not learned"
                )
        return replace(generation, examples=statistics.examples)

    def snapshot(self) -> Snapshot:
        return together(self.name, self.space, {"statistics": self._statistics.snapshot(), "memory": self._memory})

    def restore(self, snapshot: Snapshot) -> None:
        parts = apart(self.name, self.space, snapshot)
        self._statistics = ClassStatistics.restore(self.space, parts["statistics"])
        self._memory = parts["memory"]


def require_learned(statistics: ClassStatistics, class_ids: Sequence[str]) -> None:
    """Raises `UsageError` for a class without examples: it cannot be replayed."""
    for class_id in class_ids:
        if class_id not in statistics.moments.counts:
            raise UsageError(f"class {class_id!r} has no examples yet: only learned classes can be replayed")


def unlearned(number: int, statistics: ClassStatistics, shared: SharedSpace, incremental: bool = False) -> Generation:
    """Before the first example: in a shared space class vectors are used as they are, elsewhere nothing is servable."""
    classes = len(statistics.class_ids)
    servable = shared.shared and classes > 0
    vectors = class_vectors(statistics) if servable else empty_vectors(classes, statistics.space.features)
    return Generation(
        number=number,
        class_ids=statistics.class_ids,
        seen=statistics.seen,
        vectors=vectors,
        biases=np.zeros(classes, np.float32),
        centre=np.zeros(statistics.space.features, np.float32),
        transform=statistics.transform,
        servable=servable,
        calibration=shared.record(),
        examples=statistics.examples,
        incremental=incremental,
    )
