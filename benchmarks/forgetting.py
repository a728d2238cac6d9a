"""Forgetting on a stream: a learner after CUB's 20 windows, compared with the same learner on all data at once."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import numpy as np

from stream_cgzsl.benchmark.datasets import data_folder, load
from stream_cgzsl.benchmark.protocols import plan_for, windows
from stream_cgzsl.benchmark.scores import accuracy
from stream_cgzsl.learners import create
from stream_cgzsl.runtime.settings import DEFAULT_LEARNER
from stream_cgzsl.serving.generation import Generation, following
from stream_cgzsl.windows.window import Window

TARGET = 0.5


def at_once(parts: list[Window]) -> Window:
    """All windows as one with the number of the last, so that both learners draw the same random numbers."""
    described = tuple(sorted((d for part in parts for d in part.described), key=lambda d: d.class_id))
    features = {c: e for part in parts for c, e in part.features.items()}
    return replace(parts[-1], described=described, features=dict(sorted(features.items())))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help=f"fail when the difference reaches {TARGET}")
    parser.add_argument("--data", help="folder of the data sets; default: CGZSL_DATA or ../shared/data")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--learner", default=DEFAULT_LEARNER)
    given = parser.parse_args()
    data = load(data_folder(given.data) / "CUB", "efflite2")
    parts = list(windows(data, plan_for(data, "online")))
    streamed: list[float] = []
    whole: list[float] = []
    for seed in range(given.seeds):
        learner = create(given.learner, data.space(seed))
        after: Generation | None = None
        for part in parts:
            after = following(after, learner.fit(part))
        assert after is not None
        once = following(None, create(given.learner, data.space(seed)).fit(at_once(parts)))
        tests = {class_id: data.test(class_id) for class_id in after.class_ids}
        for generation, found in ((after, streamed), (once, whole)):
            harmonic = accuracy(generation, generation, tests).harmonic
            assert harmonic is not None, "CUB has classes of both kinds"
            found.append(harmonic)
    difference = float(np.mean(whole) - np.mean(streamed))
    print(f"H after 20 windows {np.mean(streamed):.2f}, all at once {np.mean(whole):.2f}, forgotten {difference:.2f}")
    return int(given.check and difference >= TARGET)


if __name__ == "__main__":
    sys.exit(main())
