"""What the bus tells of a run: which of its tasks are learned and evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stream_cgzsl.benchmark.scores import Accuracy, Readings, Scores, Tests, recalculated
from stream_cgzsl.benchmark.settings import Task
from stream_cgzsl.generation import Generation
from stream_cgzsl.schemas import Evaluation, LedgerRecord


@dataclass(frozen=True)
class Learned:
    """A task with its window and the evaluation of its generation; None where that generation was gone too soon."""

    task: Task
    record: LedgerRecord
    evaluation: Evaluation | None

    @property
    def accuracy(self) -> Accuracy:
        return Accuracy(self.figure("seen"), self.figure("unseen"))

    def figure(self, name: str) -> float | None:
        """A share of the evaluation, in percent."""
        return None if self.evaluation is None else percent(getattr(self.evaluation, name))


@dataclass
class RunRecord:
    """Takes ledger records and evaluations as they are read, in any order between the two, and tells what is done."""

    tasks: Sequence[Task]
    learned: list[Learned] = field(default_factory=list)
    _windows: list[LedgerRecord] = field(default_factory=list)
    _evaluations: dict[int, Evaluation] = field(default_factory=dict)

    @property
    def trained(self) -> int:
        """How many tasks have their window, evaluated or not."""
        return len(self._windows)

    @property
    def done(self) -> bool:
        return len(self.learned) == len(self.tasks)

    def take(self, event: LedgerRecord | Evaluation) -> Iterator[Learned]:
        """The tasks that are done now and were not before."""
        if isinstance(event, Evaluation):
            self._evaluations[event.generation] = event
        elif event.kind in ("train", "failed"):
            self._windows.append(event)
        newest = max(self._evaluations, default=0)
        while len(self.learned) < min(len(self._windows), len(self.tasks)):
            window = self._windows[len(self.learned)]
            if window.number > newest:
                break
            task = self.tasks[len(self.learned)]
            self.learned.append(Learned(task, window, self._evaluations.get(window.number)))
            yield self.learned[-1]

    def readings(self, final: Generation, tests: Tests) -> Readings:
        """Both readings; the evaluator's figures are taken as they are."""
        return Readings(
            Scores(tuple(window.accuracy for window in self.learned)),
            Scores(recalculated(final, list(self._known()), tests)),
            tuple(window.figure("forgetting") for window in self.learned),
            tuple(window.figure("area") for window in self.learned),
        )

    def _known(self) -> Iterator[Generation]:
        """What each window knew, without its projections: a compacted topic may not have them any more."""
        described: set[str] = set()
        seen: set[str] = set()
        for window in self.learned:
            described.update(window.task.described)
            seen.update(window.task.learned if window.record.kind == "train" else ())
            class_ids = tuple(sorted(described))
            yield Generation(
                number=window.record.number,
                class_ids=class_ids,
                seen=np.array([class_id in seen for class_id in class_ids], bool),
                vectors=np.zeros((len(class_ids), 0)),
                biases=np.zeros(len(class_ids)),
                centre=np.zeros(0),
            )


def percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def accepted(record: LedgerRecord) -> Mapping[str, int]:
    """How many records of each role a window took."""
    return {role: sum(span.accepted for span in spans.values()) for role, spans in record.ranges.items()}
