"""Accuracy of the learners on the online setting: CUB (20 windows) and BANKING77 (6 windows), mean over seeds.

Final weights of each window, the full test set, one set of defaults, nothing chosen on test data. A table of both readings,
then one line of figures: mSA / mUA / mH as of each window.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from stream_cgzsl.benchmark.datasets import Dataset, data_folder, load
from stream_cgzsl.benchmark.scores import Run, run
from stream_cgzsl.benchmark.settings import plan_for
from stream_cgzsl.learners import LEARNERS, create

SETS = {"CUB": ("efflite2", None), "BANKING77": ("minilm", True)}
"""What a user states: the file of features, and whether class vectors live in the feature space."""

BARS = {
    ("episodic", "CUB"): 68.5,
    ("episodic", "BANKING77"): 88.5,
    ("closed-form", "CUB"): 66.0,
    ("closed-form", "BANKING77"): 88.0,
    ("adversarial", "CUB"): 65.0,
    ("adversarial", "BANKING77"): 88.0,
}
SECONDS = {("episodic", "CUB"): 60.0}
"""What a whole run may take on two cores."""


def mean_of(values: list[float]) -> float:
    return float(np.mean(values))


def three(runs: list[Run], reading: str) -> tuple[float, float, float]:
    scores = [getattr(found, reading) for found in runs]
    return mean_of([s.mSA for s in scores]), mean_of([s.mUA for s in scores]), mean_of([s.mH for s in scores])


def measured(name: str, data: Dataset, seeds: int, orders: int) -> list[Run]:
    """A run per seed in the file's order of classes; with `orders`, a run per permuted order instead."""
    shared = SETS[data.name][1]
    plan = plan_for(data, "online")
    if orders:
        return [run(create(name, data.space(0, shared)), data, plan, order) for order in range(orders)]
    return [run(create(name, data.space(seed, shared)), data, plan) for seed in range(seeds)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a figure is short of its bar (file order)")
    parser.add_argument("--data", help="folder of the data sets; default: CGZSL_DATA or ../shared/data")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--orders", type=int, default=0, help="so many permuted orders of the classes, one seed each")
    given = parser.parse_args()
    figures, short = [], []
    for set_name in given.sets:
        data = load(data_folder(given.data) / set_name, SETS[set_name][0])
        for name in given.learners:
            runs = measured(name, data, given.seeds, given.orders)
            seconds = max(found.seconds_training for found in runs)
            as_of, again = three(runs, "as_of"), three(runs, "recalculated")
            spread = " ".join(f"{found.as_of.mH:.2f}" for found in runs)
            print(
                f"{set_name:9} {name:12} as of {as_of[0]:5.2f} / {as_of[1]:5.2f} / {as_of[2]:5.2f}   "
                f"recalculated {again[0]:5.2f} / {again[1]:5.2f} / {again[2]:5.2f}   mH {spread}   {seconds:.1f} s",
                flush=True,
            )
            figures.append(f"{name} {set_name} {as_of[0]:.1f} / {as_of[1]:.1f} / {as_of[2]:.1f}")
            if not given.orders and as_of[2] < BARS.get((name, set_name), 0.0):
                short.append(f"{name} {set_name}: mH {as_of[2]:.2f}, wanted {BARS[name, set_name]}")
            if seconds > SECONDS.get((name, set_name), np.inf):
                short.append(f"{name} {set_name}: {seconds:.1f} s, allowed {SECONDS[name, set_name]}")
    for line in short:
        print("short:", line)
    print("; ".join(figures))
    return int(given.check and bool(short))


if __name__ == "__main__":
    sys.exit(main())
