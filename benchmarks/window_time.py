"""The time of a window of `evidence` relative to `episodic`, at CUB's size and at 717 classes of 2048 features.

Processor time on one thread; the learners take turns because machines are noisy, and the shortest time of each counts.
"""

from __future__ import annotations

import argparse
import sys
from time import process_time

import numpy as np
import torch

from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Space
from stream_cgzsl.windows.window import Window

TARGET = 1.3
LEARNERS = ("evidence", "episodic")
SIZES = {"200 classes x 1280": (150, 50, 312, 1280, 47), "717 classes x 2048": (645, 72, 102, 2048, 16)}
"""Seen and unseen classes, attributes, features, rows per seen class."""


def make_window(seen: int, unseen: int, attributes: int, features: int, rows: int) -> Window:
    random = np.random.default_rng(0)
    vectors = {f"c{i:04}": random.random(attributes) for i in range(seen + unseen)}
    image = random.normal(size=(attributes, features)) / attributes**0.5
    return Window.from_arrays(
        1,
        vectors,
        {c: np.maximum(v @ image + random.normal(size=(rows, features)), 0) for c, v in list(vectors.items())[:seen]},
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help=f"fail when a ratio is above {TARGET}")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    figures, missed = [], False
    for name, size in SIZES.items():
        window, best = make_window(*size), dict.fromkeys(LEARNERS, float("inf"))
        for _ in range(given.repeats):
            for learner in LEARNERS:
                untrained = create(learner, Space(size[2], size[3], signed=False))
                started = process_time()
                untrained.fit(window)
                best[learner] = min(best[learner], process_time() - started)
        ratio = best["evidence"] / best["episodic"]
        missed = missed or ratio > TARGET
        figures.append(
            f"{name}: evidence {best['evidence']:.2f} s, episodic {best['episodic']:.2f} s, ratio {ratio:.2f}"
        )
    print(" | ".join(figures))
    return int(given.check and missed)


if __name__ == "__main__":
    sys.exit(main())
