"""A Prometheus histogram that observes a whole batch of values at once, so that counting costs next to nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector


class BatchHistogram(Collector):
    """`bounds` are the upper ends of the buckets, rising; +Inf is added."""

    def __init__(self, name: str, help: str, bounds: Sequence[float], registry: CollectorRegistry) -> None:
        self._name = name
        self._help = help
        self._bounds = np.array(bounds, np.float64)
        self._counts = np.zeros(len(bounds) + 1, np.int64)
        self._sum = 0.0
        self._lock = threading.Lock()
        registry.register(self)

    def observe(self, values: npt.NDArray[Any]) -> None:
        """Counts every value; values that are not finite are ignored."""
        values = values[np.isfinite(values)].astype(np.float64)
        counts = np.bincount(np.searchsorted(self._bounds, values, side="left"), minlength=len(self._counts))
        with self._lock:
            self._counts += counts
            self._sum += float(values.sum())

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            cumulative, total = np.cumsum(self._counts).tolist(), self._sum
        bounds = [*(repr(bound) for bound in self._bounds.tolist()), "+Inf"]
        yield HistogramMetricFamily(self._name, self._help, list(zip(bounds, cumulative, strict=True)), total)
