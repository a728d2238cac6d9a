"""The default learner without its training: attributes as they are, the offset from evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import torch

from stream_cgzsl.generation import Generation
from stream_cgzsl.learners.base import Lesson
from stream_cgzsl.learners.calibration import Evidence
from stream_cgzsl.learners.evidence import Scorer, gather_evidence
from stream_cgzsl.learners.features import transformed, unit
from stream_cgzsl.learners.interface import Monitor, Snapshot, Space
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.projection import Head, head, project
from stream_cgzsl.learners.publication import publish
from stream_cgzsl.learners.shared import Shared, decide_shared
from stream_cgzsl.learners.standard import Standard, standardise
from stream_cgzsl.learners.standardising import StandardisingLearner
from stream_cgzsl.learners.statistics import Statistics
from stream_cgzsl.learners.whitening import whiten

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ClosedFormOptions:
    """It has none: the method's constants are the method."""


class ClosedForm(StandardisingLearner):
    """One factorisation and one regression a window; memory: class statistics and two evidence curves."""

    name = "closed-form"

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(ClosedFormOptions, options, self.name)

    def _train(self, lesson: Lesson, monitor: Monitor) -> Snapshot:
        evidence = Evidence.restore(self._memory)
        return gather_evidence(evidence, lesson.window, lesson.before, self._fit, self.device, monitor.check).snapshot()

    def _publish(self, number: int, statistics: Statistics, shared: Shared, memory: Snapshot) -> Generation:
        evidence = Evidence.restore(memory)
        standard = self._standard(statistics, shared.shared)
        calibration = {**shared.record(), **evidence.record()}
        return publish(
            number, statistics, standard, head(project(standard), standard.signal), evidence.offset(), calibration
        )

    def _fit(self, statistics: Statistics) -> Scorer:
        standard = standardise(statistics, decide_shared(statistics).shared, whiten(statistics.moments, self.device))
        return scorer(standard, head(project(standard), standard.signal), statistics.transform)


def scorer(standard: Standard, head: Head, transform: str) -> Scorer:
    """Scores as `publish` publishes them, before they are divided by their common scale."""
    vectors = (standard.whitening.gain * standard.whitening.out_of(head.weights)).to(torch.float32)
    biases = head.biases.to(torch.float32)

    def score(rows: Array) -> Array:
        x = unit(transformed(rows, transform, standard.centre.device) - standard.centre)
        scores: Array = (x.to(torch.float32) @ vectors.T + biases).cpu().numpy()
        return scores

    return score
