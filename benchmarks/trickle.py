"""A trickle: classes described over time, examples one by one with Zipf-like frequencies, mean over draws.

Per-class accuracy over all classes described so far, mean over windows: overall, and by number of examples so far. The
last line has the overall figures. Nothing is chosen on test rows.
"""

from __future__ import annotations

import argparse
import sys

import torch

from stream_cgzsl.benchmark.datasets import Dataset, data_folder, load
from stream_cgzsl.benchmark.scores import Readings, mean, mean_by_examples, run
from stream_cgzsl.benchmark.trickle import trickle_for
from stream_cgzsl.learners import BOUNDS, LEARNERS, create

SETS = {"CUB": ("efflite2", None), "BANKING77": ("minilm", True)}
TARGETS = {("evidence", "CUB"): 58.0, ("evidence", "BANKING77"): 75.5}


def measure(name: str, data: Dataset, shared: bool | None, draw: int) -> Readings:
    return run(create(name, data.space(draw, shared)), data, trickle_for(data), draw).readings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a figure misses its target")
    parser.add_argument("--data", help="folder of the data sets; default: CGZSL_DATA or ../shared/data")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--learners", nargs="+", default=["evidence", "episodic"], choices=set(LEARNERS) - set(BOUNDS))
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)  # as a worker does
    figures, missed = [], []
    for set_name in given.sets:
        extractor, shared = SETS[set_name]
        data = load(data_folder(given.data) / set_name, extractor)
        for name in given.learners:
            found = [measure(name, data, shared, draw) for draw in range(given.draws)]
            overall = mean(readings.mean_overall for readings in found) or 0.0
            by_examples = mean_by_examples([readings.mean_by_examples for readings in found])
            cells = "  ".join(f"{bucket}: {figure:.1f}" for bucket, figure in by_examples.items())
            each = " ".join(f"{readings.mean_overall:.1f}" for readings in found)
            print(f"{set_name:9} {name:12} overall {overall:.1f} ({each})   {cells}", flush=True)
            figures.append(f"{name} {set_name} {overall:.1f}")
            if overall < TARGETS.get((name, set_name), 0.0):
                missed.append(f"{name} {set_name}: {overall:.1f}, target {TARGETS[name, set_name]}")
    for line in missed:
        print("missed:", line)
    print("; ".join(figures))
    return int(given.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
