"""A task: what one window of a benchmark's stream brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.datasets.dataset import Rows


@dataclass(frozen=True)
class Task:
    """Task `number`, from 1: the classes it describes and those it brings examples of, in the order they are sent.

    It brings all training rows of a class, unless `rows` names those it brings.
    """

    number: int
    described: tuple[str, ...]
    learned: tuple[str, ...]
    rows: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def examples(self, data: Dataset, class_id: str) -> Rows:
        """The rows of the data set that are the task's examples of a class."""
        named = self.rows.get(class_id)
        return data.training_rows(class_id) if named is None else np.array(named, np.int64)
