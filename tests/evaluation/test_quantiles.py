"""Quantiles from bins against exact ones."""

from __future__ import annotations

import numpy as np
import pytest

from stream_cgzsl.evaluation.quantiles import Quantiles

LEVELS = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 500.0])
def test_within_one_percent_of_the_true_ones(scale: float) -> None:
    rng = np.random.default_rng(2)
    values = scale * np.concatenate([rng.normal(size=4000), rng.exponential(size=3000) + 1])
    quantiles = Quantiles()
    for part in np.array_split(values, 7):
        quantiles.add(part.astype(np.float32))
    exact = np.quantile(values, LEVELS, method="inverted_cdf")
    np.testing.assert_allclose(np.array(quantiles.at(LEVELS), float), exact, rtol=0.0101, atol=1e-6)
    assert len(quantiles) == 7000


def test_few_values() -> None:
    quantiles = Quantiles()
    assert quantiles.at((0.5, 0.9)) == [None, None]
    quantiles.add(np.array([]))
    assert quantiles.at((0.5,)) == [None]
    quantiles.add(np.array([-2.0]))
    assert quantiles.at((0.0, 0.5, 1.0)) == [pytest.approx(-2, rel=0.0101)] * 3


def test_tiny_values_count_as_zero_and_infinite_ones_not_at_all() -> None:
    quantiles = Quantiles()
    quantiles.add(np.array([0.0, 1e-9, -1e-9, np.nan, np.inf, -np.inf]))
    assert (len(quantiles), quantiles.at((0.0, 0.5, 1.0))) == (3, [0.0, 0.0, 0.0])


def test_beyond_the_last_bin_values_count_as_the_last() -> None:
    quantiles = Quantiles()
    quantiles.add(np.array([1e12, -1e30, 1e6]))
    assert quantiles.at((0.0, 0.5, 1.0)) == [pytest.approx(n, rel=0.03) for n in (-1e6, 1e6, 1e6)]
