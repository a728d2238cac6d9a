"""What rows leave behind: counts, means and one pooled within-class scatter. Mergeable, and free of delivery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stream_cgzsl.errors import TrainingFailed
from stream_cgzsl.learners.features import ROWS_AT_ONCE, transformed
from stream_cgzsl.windows.window import Examples

Array = npt.NDArray[Any]

COLUMNS_AT_ONCE = 256
"""Columns of the scatter made by one product: only the blocks on and above the diagonal are computed."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of transformed rows, float64; an immutable value.

    `scatter` is the sum over classes of (x - mean of its class)(x - mean of its class)'. `rows` counts every row that
    went in and `freedom` the degrees of freedom of the scatter: both stay when a class is dropped, because the scatter
    stays (see `without`).
    """

    counts: Mapping[str, int]
    means: Mapping[str, Array]  # [features] each
    scatter: Array  # [features, features]
    rows: int
    freedom: int

    @classmethod
    def none(cls, features: int) -> Moments:
        return cls({}, {}, np.zeros((features, features)), 0, 0)

    @classmethod
    def of(
        cls,
        examples: Mapping[str, Examples],
        features: int,
        transform: str,
        device: torch.device | str = "cpu",
        check: Callable[[], None] = lambda: None,
    ) -> Moments:
        """Moments of a window's rows, class by class in order of id, each class in the order of its rows.

        Where only some of a class's rows were kept, they stand for all `count` of them: the mean is theirs, and the
        scatter is their unbiased covariance times count - 1. `check` is called between blocks of rows and may raise.
        """
        counts: dict[str, int] = {}
        means: dict[str, Array] = {}
        gram = _Gram(features, device)
        freedom = 0
        for class_id in sorted(examples):
            given = examples[class_id]
            kept = len(given.rows)
            if kept == 0:
                continue
            total = torch.zeros(features, dtype=torch.float64, device=device)
            for start in range(0, kept, ROWS_AT_ONCE):
                check()
                total += transformed(given.rows[start : start + ROWS_AT_ONCE], transform, device).sum(dim=0)
            mean = total / kept
            if not bool(torch.isfinite(mean).all()):
                raise TrainingFailed(
                    f"class {class_id!r} has features that are not finite; remove them and train again"
                )
            if kept > 1:
                weight = ((given.count - 1) / (kept - 1)) ** 0.5
                for start in range(0, kept, ROWS_AT_ONCE):
                    check()
                    block = transformed(given.rows[start : start + ROWS_AT_ONCE], transform, device)
                    gram.add(block.sub_(mean).mul_(weight))
                freedom += given.count - 1
            counts[class_id] = given.count
            means[class_id] = mean.cpu().numpy()
        return cls(counts, means, gram.total(), sum(counts.values()), freedom)

    def merge(self, other: Moments, device: torch.device | str = "cpu") -> Moments:
        """Both together, as if all rows had come at once. Which of the two is asked does not change a byte."""
        gram = _Gram(len(self.scatter), device)
        counts: dict[str, int] = {}
        means: dict[str, Array] = {}
        gaps: list[Array] = []
        for class_id in sorted({*self.counts, *other.counts}):
            one, two = self.counts.get(class_id, 0), other.counts.get(class_id, 0)
            counts[class_id] = one + two
            if not one or not two:
                means[class_id] = (self if one else other).means[class_id]
                continue
            means[class_id] = (one * self.means[class_id] + two * other.means[class_id]) / (one + two)
            gaps.append((other.means[class_id] - self.means[class_id]) * (one * two / (one + two)) ** 0.5)
        scatter = self.scatter + other.scatter
        if gaps:
            gram.add(torch.from_numpy(np.stack(gaps)).to(device))
            scatter += gram.total()
        freedom = self.freedom + other.freedom + len(gaps)
        return Moments(counts, means, scatter, self.rows + other.rows, freedom)

    def without(self, class_id: str) -> Moments:
        """Drops a class's count and mean.

        Its share of the pooled scatter stays, with its rows and degrees of freedom: it tells how features vary
        inside any class, nothing about where this one lies, and cannot be told apart any more.
        """
        if class_id not in self.counts:
            return self
        counts = {c: n for c, n in self.counts.items() if c != class_id}
        return Moments(counts, {c: self.means[c] for c in counts}, self.scatter, self.rows, self.freedom)


class _Gram:
    """Sums x'x over blocks of rows; small blocks are gathered so that each product is worth its cost."""

    def __init__(self, features: int, device: torch.device | str) -> None:
        self._sum = torch.zeros((features, features), dtype=torch.float64, device=device)
        self._waiting: list[torch.Tensor] = []
        self._rows = 0

    def add(self, block: torch.Tensor) -> None:
        if self._rows + len(block) > ROWS_AT_ONCE:
            self._flush()
        self._waiting.append(block)
        self._rows += len(block)

    def _flush(self) -> None:
        if not self._waiting:
            return
        x = self._waiting[0] if len(self._waiting) == 1 else torch.cat(self._waiting)
        for start in range(0, len(self._sum), COLUMNS_AT_ONCE):
            stop = start + COLUMNS_AT_ONCE
            self._sum[start:stop, start:].addmm_(x[:, start:stop].T, x[:, start:])
        self._waiting, self._rows = [], 0

    def total(self) -> Array:
        self._flush()
        upper = torch.triu(self._sum)
        return (upper + torch.triu(self._sum, 1).T).cpu().numpy()
