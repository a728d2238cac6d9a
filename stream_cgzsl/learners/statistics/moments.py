"""What is kept of rows: counts, means and one pooled within-class scatter. Mergeable in any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from stream_cgzsl.errors import TrainingFailed
from stream_cgzsl.learners.statistics.features import BLOCK_ROWS, transformed
from stream_cgzsl.schemas import Array
from stream_cgzsl.windows.window import Examples

BLOCK_COLUMNS = 256
"""Columns of the scatter per product: only blocks on and above the diagonal are computed."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of transformed rows, float64; an immutable value.

    `scatter` is the sum over classes of (x - mean of its class)(x - mean of its class)'. `rows` counts every row and
    `freedom` the degrees of freedom of the scatter; both stay when a class is dropped, as the scatter does (`without`).
    """

    counts: Mapping[str, float]  # whole numbers, except where a learner lets them fade
    means: Mapping[str, Array]  # [features] each
    scatter: Array  # [features, features]
    rows: int
    freedom: float

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
            weight = ((given.count - 1) / max(kept - 1, 1)) ** 0.5
            sizes, centres = [], []
            for start in range(0, kept, BLOCK_ROWS):
                check()
                block = transformed(given.rows[start : start + BLOCK_ROWS], transform, device)
                sizes.append(len(block))
                centres.append(block.mean(dim=0))
                gram.add(block.sub_(centres[-1]), weight)
            size = torch.tensor(sizes, dtype=torch.float64, device=device)[:, None]
            centre = torch.stack(centres)  # [blocks, features]
            mean = (size * centre).sum(dim=0) / kept
            if not bool(torch.isfinite(mean).all()):
                raise TrainingFailed(
                    f"class {class_id!r} has features that are not finite; remove them and train again"
                )
            if len(sizes) > 1:
                gram.add(size.sqrt() * (centre - mean), weight)
            freedom += given.count - 1 if kept > 1 else 0
            counts[class_id] = given.count
            means[class_id] = mean.cpu().numpy()
        return cls(counts, means, gram.total(), sum(counts.values()), freedom)

    def merge(self, other: Moments, device: torch.device | str = "cpu") -> Moments:
        """Both together, as if all rows had come at once. a.merge(b) and b.merge(a) are equal to the last bit."""
        if not self.rows or not other.rows:
            return self if self.rows else other
        counts: dict[str, float] = {}
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
            gram = _Gram(len(scatter), device)
            gram.add(torch.from_numpy(np.stack(gaps)).to(device))
            scatter += gram.total()
        freedom = self.freedom + other.freedom + len(gaps)
        return Moments(counts, means, scatter, self.rows + other.rows, freedom)

    def without(self, class_id: str) -> Moments:
        """Drops a class's count and mean.

        Its share of the pooled scatter stays, with its rows and degrees of freedom: it says how features vary inside
        any class and nothing about where this one was, and it cannot be separated any more.
        """
        if class_id not in self.counts:
            return self
        counts = {c: n for c, n in self.counts.items() if c != class_id}
        return Moments(counts, {c: self.means[c] for c in counts}, self.scatter, self.rows, self.freedom)


class _Gram:
    """Sums x'x over rows, in blocks large enough for fast products."""

    def __init__(self, features: int, device: torch.device | str) -> None:
        self._sum = torch.zeros((features, features), dtype=torch.float64, device=device)
        self._buffer = torch.empty((BLOCK_ROWS, features), dtype=torch.float64, device=device)
        self._filled = 0

    def add(self, rows: torch.Tensor, weight: float = 1.0) -> None:
        while len(rows):
            part = rows[: BLOCK_ROWS - self._filled]
            rows = rows[len(part) :]
            torch.mul(part, weight, out=self._buffer[self._filled : self._filled + len(part)])
            self._filled += len(part)
            if self._filled == BLOCK_ROWS:
                self._flush()

    def _flush(self) -> None:
        x = self._buffer[: self._filled]
        for start, stop in self._blocks():
            self._sum[start:stop, start:].addmm_(x[:, start:stop].T, x[:, start:])
        self._filled = 0

    def total(self) -> Array:
        """[features, features], exactly symmetric."""
        if self._filled:
            self._flush()
        for start, stop in self._blocks():
            square = self._sum[start:stop, start:stop].triu()
            self._sum[start:stop, start:stop] = square + square.triu(1).T
            self._sum[stop:, start:stop] = self._sum[start:stop, stop:].T
        return self._sum.cpu().numpy()

    def _blocks(self) -> list[tuple[int, int]]:
        size = len(self._sum)
        return [(start, min(start + BLOCK_COLUMNS, size)) for start in range(0, size, BLOCK_COLUMNS)]
