"""Peak memory of training on a window of a million features of 2048 numbers, of which 2 GB (250,000 rows) are kept."""

from __future__ import annotations

import argparse
import resource
import sys
from time import perf_counter

import numpy as np

from stream_cgzsl.learners import LEARNERS, create
from stream_cgzsl.learners.interface import Space
from stream_cgzsl.serving.generation import following
from stream_cgzsl.windows.window import Description, Examples, Window

FEATURES = 2048
ATTRIBUTES = 85
TARGET = 1.0
"""Gigabytes that training may need in addition to the kept rows and the imported libraries."""


def gigabytes() -> float:
    """The peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def make_window(arrived: int, kept: int, classes: int) -> Window:
    random = np.random.default_rng(0)
    described, features = [], {}
    image = random.normal(size=(ATTRIBUTES, FEATURES)).astype(np.float32) / ATTRIBUTES**0.5
    for i in range(classes):
        vector = random.normal(size=ATTRIBUTES).astype(np.float32)
        described.append(Description(f"c{i:04}", vector))
        if i % 10:
            seen = classes - (classes + 9) // 10
            rows = random.standard_normal((kept // seen, FEATURES), dtype=np.float32)
            rows += vector @ image
            features[f"c{i:04}"] = Examples(arrived // seen, np.maximum(rows, 0, out=rows))
    return Window(1, tuple(described), (), features)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help=f"fail when training needs more than {TARGET} GB in addition to its rows"
    )
    parser.add_argument("--learner", default="episodic", choices=list(LEARNERS))
    parser.add_argument("--arrived", type=int, default=1_000_000)
    parser.add_argument("--kept", type=int, default=250_000)
    parser.add_argument("--classes", type=int, default=100)
    given = parser.parse_args()
    window = make_window(given.arrived, given.kept, given.classes)
    rows = sum(e.rows.nbytes for e in window.features.values()) / 1e9
    learner = create(given.learner, Space(ATTRIBUTES, FEATURES, signed=False))
    before = gigabytes()
    started = perf_counter()
    generation = following(None, learner.fit(window))
    seconds = perf_counter() - started
    extra = gigabytes() - before
    print(
        f"{given.learner}: {sum(e.count for e in window.features.values())} features, {rows:.2f} GB of them kept, "
        f"{int(generation.seen.sum())} seen classes: {seconds:.0f} s, peak {gigabytes():.2f} GB, "
        f"{extra:.2f} GB of it for training"
    )
    return int(given.check and extra > TARGET)


if __name__ == "__main__":
    sys.exit(main())
