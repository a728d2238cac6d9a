"""Quantiles of any number of values in little memory: counts in fixed bins, each two percent wide."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from stream_cgzsl.generation import Array

_WIDTH = math.log(1.02)
_LEAST, _MOST = 1e-6, 1e6  # what is nearer to 0 counts as 0, what is farther away as this far
_LAST = int(math.log(_MOST / _LEAST) / _WIDTH)


class Quantiles:
    """Every answer is within one percent of a value that has as many values below it as was asked for.

    There are some 2,800 bins, but only those with values in them take memory.
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, values: Array) -> None:
        """Counts every value; those that are not finite are left out."""
        values = np.asarray(values, np.float64)
        values = values[np.isfinite(values)]
        size = np.clip(np.abs(values), _LEAST, _MOST)
        bins = np.minimum((np.log(size / _LEAST) / _WIDTH).astype(int) + 1, _LAST)
        bins = np.where(np.abs(values) < _LEAST, 0, np.sign(values).astype(int) * bins)
        for place, count in zip(*np.unique(bins, return_counts=True), strict=True):
            self._counts[int(place)] += int(count)

    def __len__(self) -> int:
        return self._counts.total()

    def at(self, shares: Sequence[float]) -> list[float | None]:
        """The values below which these shares (0 to 1) of all values are; None while there are no values."""
        if not self._counts:
            return [None] * len(shares)
        places = sorted(self._counts)
        below = np.cumsum([self._counts[place] for place in places])
        ranks = np.clip(np.ceil(np.asarray(shares) * below[-1]), 1, below[-1])
        return [_middle(places[index]) for index in np.searchsorted(below, ranks)]


def _middle(place: int) -> float:
    """A number in the middle of a bin."""
    return 0.0 if not place else math.copysign(_LEAST * math.exp((abs(place) - 0.5) * _WIDTH), place)
