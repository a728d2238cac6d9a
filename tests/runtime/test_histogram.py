"""A histogram of whole batches exports what a histogram of single values would."""

from __future__ import annotations

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from stream_cgzsl.runtime.histogram import BatchHistogram

BOUNDS = (0.0, 0.125, 0.25, 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_counts_as_the_ordinary_histogram_does(dtype: type) -> None:
    values = np.array([-3, -0.5, 0, 0, 0.125, 0.25, 0.5, 1, 7], dtype)  # some on a bound
    ordinary, batched = CollectorRegistry(), CollectorRegistry()
    single = Histogram("score", "of answers", buckets=BOUNDS, registry=ordinary)
    for value in values.tolist():
        single.observe(value)
    together = BatchHistogram("score", "of answers", BOUNDS, batched)
    together.observe(values[:4])
    together.observe(values[4:])
    assert samples(batched) == samples(ordinary)


def test_values_that_are_not_finite_are_ignored() -> None:
    registry = CollectorRegistry()
    BatchHistogram("score", "of answers", BOUNDS, registry).observe(np.array([np.nan, np.inf, -np.inf, 0.1]))
    assert registry.get_sample_value("score_count") == 1
    assert registry.get_sample_value("score_sum") == pytest.approx(0.1)


def test_an_empty_batch_counts_nothing() -> None:
    registry = CollectorRegistry()
    BatchHistogram("score", "of answers", BOUNDS, registry).observe(np.zeros(0, np.float32))
    assert registry.get_sample_value("score_count") == 0


def samples(registry: CollectorRegistry) -> dict[str, float]:
    lines = [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines) if "_created" not in name}
