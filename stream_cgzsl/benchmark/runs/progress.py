"""How far a run is: which of its tasks are learned and evaluated, as read from the bus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stream_cgzsl.benchmark.scores import (
    Accuracy,
    Readings,
    Scores,
    Tests,
    in_percent,
    overall_accuracy,
    percent,
    recalculated,
    seen_in,
)
from stream_cgzsl.benchmark.task import Task
from stream_cgzsl.evaluation.forgetting import task_forgetting
from stream_cgzsl.schemas import Evaluation, LedgerRecord
from stream_cgzsl.serving.generation import Generation


@dataclass(frozen=True)
class TaskResult:
    """A task, its window and the evaluation of its generation, None where that generation was replaced too soon."""

    task: Task
    record: LedgerRecord
    evaluation: Evaluation | None

    @property
    def accuracy(self) -> Accuracy:
        return Accuracy(self.figure("seen"), self.figure("unseen"))

    def figure(self, name: str) -> float | None:
        """A fraction of the evaluation, in percent."""
        return None if self.evaluation is None else percent(getattr(self.evaluation, name))

    def accepted(self) -> Mapping[str, int]:
        """How many records of each role the window accepted."""
        return {role: sum(span.accepted for span in spans.values()) for role, spans in self.record.ranges.items()}


@dataclass
class RunProgress:
    """Collects ledger records and evaluations as they are read; either of the two may be ahead of the other."""

    tasks: Sequence[Task]
    results: list[TaskResult] = field(default_factory=list)
    _windows: list[LedgerRecord] = field(default_factory=list)
    _evaluations: dict[int, Evaluation] = field(default_factory=dict)

    @property
    def trained(self) -> int:
        """How many tasks have their window, evaluated or not."""
        return len(self._windows)

    @property
    def done(self) -> bool:
        return len(self.results) == len(self.tasks)

    def add(self, event: LedgerRecord | Evaluation) -> Iterator[TaskResult]:
        """Yields the tasks that are done now and were not before."""
        if isinstance(event, Evaluation):
            self._evaluations[event.generation] = event
        elif event.kind in ("train", "failed") and event.closed_by != "dead-letters":  # the rest of its task follows
            self._windows.append(event)
        newest = max(self._evaluations, default=0)
        while len(self.results) < min(len(self._windows), len(self.tasks)):
            window = self._windows[len(self.results)]
            if window.number > newest:
                break
            task = self.tasks[len(self.results)]
            self.results.append(TaskResult(task, window, self._evaluations.get(window.number)))
            yield self.results[-1]

    def readings(self, final: Generation, tests: Tests) -> Readings:
        """Both readings: `as_of` as the evaluator published it, `recalculated` with the final generation."""
        evaluations = [result.evaluation for result in self.results]
        spaces = list(self._label_spaces())
        per_class = [{} if e is None else e.per_class for e in evaluations]
        return Readings(
            Scores(tuple(result.accuracy for result in self.results)),
            Scores(recalculated(final, spaces, tests)),
            tuple(result.figure("forgetting") for result in self.results),
            tuple(result.figure("area") for result in self.results),
            tuple(overall_accuracy(found) for found in per_class),
            tuple(in_percent({} if e is None else e.by_examples) for e in evaluations),
            percent(task_forgetting([seen_in(space) for space in spaces], per_class)),
        )

    def _label_spaces(self) -> Iterator[Generation]:
        """The classes as of each window, without projections: a compacted topic may have lost those."""
        described: set[str] = set()
        seen: set[str] = set()
        for result in self.results:
            described.update(result.task.described)
            seen.update(result.task.learned if result.record.kind == "train" else ())
            class_ids = tuple(sorted(described))
            yield Generation(
                number=result.record.number,
                class_ids=class_ids,
                seen=np.array([class_id in seen for class_id in class_ids], bool),
                vectors=np.zeros((len(class_ids), 0)),
                biases=np.zeros(len(class_ids)),
                centre=np.zeros(0),
            )
