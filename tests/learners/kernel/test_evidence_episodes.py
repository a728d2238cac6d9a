"""Which episodes are drawn, and what is trained and what is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from worlds import SPACE, Array, World

from stream_cgzsl.learners import create
from stream_cgzsl.learners.kernel.evidence_episodes import draw_episode
from stream_cgzsl.learners.numerics.randomness import generator
from stream_cgzsl.windows.window import Window

COUNTS = (1, 30, 2, 9, 1, 16, 3, 8, 17, 5)


@pytest.mark.parametrize("classes", [4, 5, 10, 600])
def test_episodes_are_drawn_as_the_step_says(classes: int) -> None:
    counts = torch.from_numpy(np.resize(np.array(COUNTS, np.float64), classes))
    rng = generator(0, 1, "test")
    taken = set()
    for _ in range(20):
        e = draw_episode(counts, pool=2048, rows=1024, rng=rng)
        present, kept = len(e.order), e.kept
        assert present == min(classes, 512) == len(set(e.order.tolist()))
        assert present - kept == min(max(2, round(present / 4)), present - 2)
        n = counts[e.order].numpy()
        k = np.array([max(1, count - max(1, count // 8)) for count in n[:kept]])
        np.testing.assert_array_equal(e.learned, k)
        np.testing.assert_array_equal(e.left, np.append(n[:kept] - k, n[kept:]))
        hidden = (e.labels >= kept).sum()
        assert len(e.labels) == 256 and hidden == (128 if (n[:kept] > 1).any() else 256)
        assert (e.left[e.labels] > 0).all()
        for noise, size, signs in ((e.noise, kept, e.signs), (e.row_noise, 256, e.row_signs)):
            assert len(set(noise.tolist())) == size == len(signs) and set(signs.tolist()) <= {-1.0, 1.0}
        taken.update(e.order.tolist())
    assert len(taken) == classes


def trained(counts: tuple[int, ...], weights: bool = True) -> tuple[Array, float]:
    """Attribute weights, as logarithms less their mean, and offset after one window with so many examples of each."""
    world = World(classes=len(counts))
    learner = create("evidence", SPACE, {"weights": weights})
    rows = {c: world.rows(c, n) for c, n in zip(world.vectors, counts, strict=True)}
    learner.fit(Window.from_arrays(1, world.vectors, rows))
    snapshot = learner.snapshot()
    weights = np.log(snapshot.arrays["frame.attribute_gains"])
    return weights - weights.mean(), snapshot.meta["frame"]["offset"]


def test_three_classes_train_nothing() -> None:
    weights, offset = trained((9, 9, 9))
    assert np.abs(weights).max() < 1e-12 and offset == 0.05


@pytest.mark.parametrize("counts", [(1,) * 8, (1,) * 7 + (20,)], ids=str)
def test_the_offset_is_not_trained_where_fewer_than_two_classes_can_be_asked(counts: tuple[int, ...]) -> None:
    weights, offset = trained(counts)
    assert np.abs(weights).max() > 0.01 and offset == pytest.approx(0.05)


def test_attribute_weights_can_be_left_out() -> None:
    weights, offset = trained(COUNTS, weights=False)
    assert np.abs(weights).max() < 1e-12 and abs(offset - 0.05) > 1e-3
