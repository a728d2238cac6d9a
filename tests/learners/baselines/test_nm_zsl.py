from __future__ import annotations

import numpy as np
import torch
from worlds import SPACE, World

from stream_cgzsl.learners.baselines.nm_zsl import EPSILON, NmZsl, Prototyper, moments, standardised

RNG = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def test_hidden_units_are_standardised_over_classes_by_their_variance() -> None:
    h = torch.randn(5, 3, generator=RNG)
    found = standardised(h, *moments(h))
    for unit in range(3):
        values = [float(value) for value in h[:, unit]]
        mean = sum(values) / 5
        variance = sum((value - mean) ** 2 for value in values) / 4
        expected = [(value - mean) / (variance + EPSILON) for value in values]
        np.testing.assert_allclose(found[:, unit].numpy(), expected, rtol=1e-4)


def test_one_class_has_no_variance() -> None:
    h = torch.randn(1, 3, generator=RNG)
    assert standardised(h, *moments(h)).tolist() == [[0.0, 0.0, 0.0]]


def test_running_moments_follow_in_training_and_only_there() -> None:
    network = Prototyper.started(SPACE, 8, RNG, CPU)
    a = torch.randn(5, SPACE.attributes, generator=RNG)
    network(a)
    assert network.running[0].tolist() == [0.0] * 8 and network.running[1].tolist() == [1.0] * 8
    (w1, b1), (w2, b2), _ = network.layers.weights
    h = torch.relu(a @ w1.T + b1) @ w2.T + b2
    network(a, training=True)
    torch.testing.assert_close(network.running[0], 0.1 * h.mean(0))
    torch.testing.assert_close(network.running[1], 0.9 + 0.1 * h.var(0))


def test_scores_of_seen_classes_are_a_little_less() -> None:
    world = World()
    window = world.window(1, world.ids(0, 8), world.ids(0, 6))
    vectors = NmZsl(SPACE, {"hidden": 16, "epochs": 2}).fit(window).vectors
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [0.95] * 6 + [1.0] * 2, rtol=1e-5)
