"""Few-shot in miniature: the first examples of a class that was only described until then."""

from __future__ import annotations

import numpy as np
from worlds import SPACE

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.few_shot import draw, few_shot, mean_curve
from stream_cgzsl.learners import create


def partly_described(own: float, seed: int = 1, seen: int = 30, unseen: int = 10, features: int = 16) -> Dataset:
    """Class means are an image of the attributes, and `own` times as much that attributes do not say."""
    random = np.random.default_rng(seed)
    classes, train = seen + unseen, 20
    attributes = random.normal(size=(classes, 6))
    means = attributes @ random.normal(size=(6, features))
    means += own * np.linalg.norm(means, axis=1, keepdims=True) * random.normal(size=means.shape) / np.sqrt(features)
    noise = 0.15 * np.linalg.norm(means, axis=1, keepdims=True)
    labels, within = np.divmod(np.arange(classes * 60), 60)
    rows = means[labels] + noise[labels] * random.normal(size=(len(labels), features))
    of_seen = labels < seen
    return Dataset(
        name="SMALL",
        class_ids=tuple(f"c{i:02}" for i in range(classes)),
        attributes=attributes.astype(np.float32),
        features=np.maximum(rows, 0).astype(np.float32),
        labels=labels,
        train=np.flatnonzero(of_seen & (within < train)),
        test_seen=np.flatnonzero(of_seen & (within >= train)),
        test_unseen=np.flatnonzero(~of_seen),
    )


def first_example(learner: str, data: Dataset) -> float:
    """By how much the accuracy of a described class changes with its first example, in points; mean over draws."""
    draws = [draw(data, seed) for seed in range(2)]
    without, one = mean_curve(list(few_shot(create(learner, SPACE), data, draws, (0, 1))))
    return one.given - without.given


def test_a_first_example_does_no_harm_where_a_description_leaves_something_open() -> None:
    data = partly_described(own=0.5)
    assert first_example("evidence", data) >= 0
    assert first_example("episodic", data) < -10


def test_a_first_example_costs_little_where_a_description_says_everything() -> None:
    """There an example adds only noise; the process always expects that something is left open."""
    data = partly_described(own=0)
    assert first_example("evidence", data) > -15
    assert first_example("episodic", data) < -30
