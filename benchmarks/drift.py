"""Old evidence in a world that drifts: `evidence` with and without a half-life.

A synthetic world of 80 classes and 64 features: class means follow from attributes by a map, and have a part of their
own; both walk by `speed` a window. 80 windows bring 80 examples each, a few classes most of them, a third of the
classes none. Accuracy on the world as it is at that window, mean of the last two thirds: all classes, the most frequent
ones, and those that never have an example; and the number of refreshes.

    python benchmarks/drift.py [--seeds 2]
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

import numpy as np

from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Space
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.generation import Generation, following
from stream_cgzsl.windows.window import Window

CLASSES, ATTRIBUTES, FEATURES, WINDOWS, EXAMPLES, TESTS = 80, 20, 64, 80, 80, 5
FREQUENT, TAUGHT = 24, 54  # of the classes, by how often they have examples
NOISE = 4.0
SPEEDS, HALF_LIVES = (0.0, 0.05, 0.15), (0.0, 10.0, 30.0)


class Found(NamedTuple):
    every: float
    frequent: float
    never: float
    refreshes: int


def drifted(speed: float, half_life: float, seed: int) -> Found:
    random = np.random.default_rng(seed)
    attributes = random.normal(size=(CLASSES, ATTRIBUTES)).astype(np.float32)
    turn, own = random.normal(size=(ATTRIBUTES, FEATURES)), random.normal(size=(CLASSES, FEATURES))
    share = 1 / np.arange(1, TAUGHT + 1)
    ids = [f"class-{number:02}" for number in range(CLASSES)]
    learner = create("evidence", Space(ATTRIBUTES, FEATURES, True, seed=seed), {"half_life": half_life, "growth": 0.2})
    generation: Generation | None = None
    right: list[Array] = []
    refreshes = 0
    for number in range(1, WINDOWS + 1):
        turn += speed * random.normal(size=turn.shape)
        own += speed * random.normal(size=own.shape)
        means = attributes @ turn / ATTRIBUTES**0.5 + own
        labels = random.choice(TAUGHT, EXAMPLES, p=share / share.sum())
        rows = means[labels] + NOISE * random.normal(size=(EXAMPLES, FEATURES))
        features = {ids[c]: rows[labels == c].astype(np.float32) for c in np.unique(labels)}
        described = dict(zip(ids, attributes, strict=True)) if number == 1 else {}
        generation = following(generation, learner.fit(Window.from_arrays(number, described, features)))
        refreshes += generation.delta is None
        if number > WINDOWS // 3:
            truth = np.repeat(np.arange(CLASSES), TESTS)
            tests = (means[truth] + NOISE * random.normal(size=(len(truth), FEATURES))).astype(np.float32)
            answers = generation.classify(tests).indices[:, 0]
            right.append((answers == truth).reshape(CLASSES, TESTS).mean(axis=1))
    accuracy = 100 * np.mean(right, axis=0)
    return Found(accuracy.mean(), accuracy[:FREQUENT].mean(), accuracy[TAUGHT:].mean(), refreshes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    lines = []
    for speed in SPEEDS:
        for half_life in HALF_LIVES:
            runs = [drifted(speed, half_life, seed) for seed in range(given.seeds)]
            every, frequent, never, refreshes = np.mean(runs, axis=0)
            lines.append(
                f"speed {speed:g}, half-life {half_life:g}: {every:.1f} / {frequent:.1f} / {never:.1f}; {refreshes:.0f}"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    print(" | ".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
