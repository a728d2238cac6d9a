"""Quantiles of any number of values in bounded memory: counts in fixed bins, each two percent wide."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from stream_cgzsl.schemas import Array

_WIDTH = math.log(1.02)
_LEAST, _MOST = 1e-6, 1e6  # smaller magnitudes count as 0, larger ones as this
_LAST = int(math.log(_MOST / _LEAST) / _WIDTH)


class Quantiles:
    """Quantiles within one percent of an exact one. There are some 2,800 bins; only those with values take memory."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, values: Array) -> None:
        """Counts every finite value."""
        values = np.asarray(values, np.float64)
        values = values[np.isfinite(values)]
        size = np.clip(np.abs(values), _LEAST, _MOST)
        bins = np.minimum((np.log(size / _LEAST) / _WIDTH).astype(int) + 1, _LAST)
        bins = np.where(np.abs(values) < _LEAST, 0, np.sign(values).astype(int) * bins)
        for number, count in zip(*np.unique(bins, return_counts=True), strict=True):
            self._counts[int(number)] += int(count)

    def __len__(self) -> int:
        return self._counts.total()

    def at(self, quantiles: Sequence[float]) -> list[float | None]:
        """The values at these quantiles (0 to 1); None while there are no values."""
        if not self._counts:
            return [None] * len(quantiles)
        bins = sorted(self._counts)
        below = np.cumsum([self._counts[number] for number in bins])
        ranks = np.clip(np.ceil(np.asarray(quantiles) * below[-1]), 1, below[-1])
        return [_middle(bins[index]) for index in np.searchsorted(below, ranks)]


def _middle(number: int) -> float:
    """The middle of a bin."""
    return 0.0 if not number else math.copysign(_LEAST * math.exp((abs(number) - 0.5) * _WIDTH), number)
