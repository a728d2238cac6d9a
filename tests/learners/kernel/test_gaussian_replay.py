"""G of the kernel learners: replayed features have the mean and the covariance that were measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from stream_cgzsl.learners.interface import Space
from stream_cgzsl.learners.kernel.gaussian_replay import gaussian_features
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.moments import Moments
from stream_cgzsl.windows.window import Examples


def test_draws_spread_as_the_rows_did_around_the_mean_asked_for() -> None:
    random = np.random.default_rng(4)
    scatter = 0.02 * random.normal(size=(6, 6))
    rows = np.asarray(np.eye(6)[0] + random.normal(size=(400, 6)) @ scatter, np.float32)
    moments = Moments.of({"c": Examples(400, rows)}, 6, "none")
    mean = np.eye(6)[2]
    statistics = ClassStatistics(Space(1, 6, True), {}, replace(moments, means={"c": mean}))
    [x] = gaussian_features(statistics, ["c"], 20_000, torch.device("cpu")).astype(np.float64)
    across = [0, 1, 3, 4, 5]  # at length 1, what varies is what is orthogonal to the mean
    np.testing.assert_allclose(x.mean(axis=0), mean, atol=0.02)
    np.testing.assert_allclose(
        np.cov(x.T)[np.ix_(across, across)], (moments.scatter / moments.freedom)[np.ix_(across, across)], atol=3e-4
    )
