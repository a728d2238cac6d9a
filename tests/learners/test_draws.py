"""G of the standardising learners: draws have the mean and the covariance that were measured."""

from __future__ import annotations

import numpy as np
import torch

from stream_cgzsl.learners.draws import drawn
from stream_cgzsl.learners.moments import Moments
from stream_cgzsl.learners.randomness import generator
from stream_cgzsl.windows.window import Examples


def test_draws_spread_as_the_rows_did_around_the_mean_asked_for() -> None:
    random = np.random.default_rng(4)
    scatter = 0.02 * random.normal(size=(6, 6))
    rows = np.asarray(np.eye(6)[0] + random.normal(size=(400, 6)) @ scatter, np.float32)
    moments = Moments.of({"c": Examples(400, rows)}, 6, "none")
    mean = np.eye(6)[2]
    x = drawn(moments, torch.from_numpy(mean[None]), 20_000, generator(0, 0, "test"))[0].double().numpy()
    across = [0, 1, 3, 4, 5]  # at length 1, what varies is what stands across the mean
    np.testing.assert_allclose(x.mean(axis=0), mean, atol=0.02)
    np.testing.assert_allclose(
        np.cov(x.T)[np.ix_(across, across)], (moments.scatter / moments.freedom)[np.ix_(across, across)], atol=3e-4
    )
