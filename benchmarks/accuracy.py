"""Accuracy of the learners in the online setting: CUB (20 windows) and BANKING77 (6 windows), mean over seeds.

Final weights of each window, the full test set, default options, nothing chosen on test data. `paper` has a second row
with what helps it; fifty epochs a window take it ten minutes or more for a run of CUB on one core. Prints a table of
both readings, then one line of figures: mSA / mUA / mH as of each window.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from stream_cgzsl.benchmark.datasets import Dataset, data_folder, load
from stream_cgzsl.benchmark.protocols import plan_for
from stream_cgzsl.benchmark.scores import Run, run
from stream_cgzsl.learners import BASELINES, LEARNERS, create

SETS = {"CUB": ("efflite2", None), "BANKING77": ("minilm", True)}
"""What a user specifies: the file of features, and whether class vectors are in the feature space."""

OURS = [name for name in LEARNERS if name not in BASELINES]

TARGETS = {
    ("evidence", "CUB"): 69.5,
    ("evidence", "BANKING77"): 89.3,
    ("episodic", "CUB"): 68.5,
    ("episodic", "BANKING77"): 88.5,
    ("closed-form", "CUB"): 66.0,
    ("closed-form", "BANKING77"): 88.0,
    ("adversarial", "CUB"): 65.0,
    ("adversarial", "BANKING77"): 88.0,
}
HELPED = {"paper, helped": ("paper", {"rescale": True, "calibrate": True})}
"""Rows with options, beside those with defaults: what helps the printed system and is not printed. Its expected offset
was chosen by test accuracy on these two data sets (docs/method.md)."""

SECONDS = {("episodic", "CUB"): 60.0}
"""How long a complete run may take on two cores."""


def mean(values: list[float]) -> float:
    return float(np.mean(values))


def means(runs: list[Run], reading: str) -> tuple[float, float, float]:
    scores = [getattr(found, reading) for found in runs]
    return mean([s.mSA for s in scores]), mean([s.mUA for s in scores]), mean([s.mH for s in scores])


def measure(name: str, data: Dataset, seeds: int, orders: int) -> list[Run]:
    """One run per seed in the file's class order; with `orders`, one run per permuted order instead."""
    shared = SETS[data.name][1]
    plan = plan_for(data, "online")
    name, options = HELPED.get(name, (name, {}))
    if orders:
        return [run(create(name, data.space(0, shared), options), data, plan, order) for order in range(orders)]
    return [run(create(name, data.space(seed, shared), options), data, plan) for seed in range(seeds)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a figure misses its target (file order)")
    parser.add_argument("--data", help="folder of the data sets; default: CGZSL_DATA or ../shared/data")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--learners", nargs="+", default=[*OURS, *HELPED], choices=[*LEARNERS, *HELPED])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--orders", type=int, default=0, help="number of permuted class orders, one seed each")
    given = parser.parse_args()
    figures, missed = [], []
    for set_name in given.sets:
        data = load(data_folder(given.data) / set_name, SETS[set_name][0])
        for name in given.learners:
            runs = measure(name, data, given.seeds, given.orders)
            seconds = max(found.seconds_training for found in runs)
            as_of, again = means(runs, "as_of"), means(runs, "recalculated")
            spread = " ".join(f"{found.as_of.mH:.2f}" for found in runs)
            print(
                f"{set_name:9} {name:13} as of {as_of[0]:5.2f} / {as_of[1]:5.2f} / {as_of[2]:5.2f}   "
                f"recalculated {again[0]:5.2f} / {again[1]:5.2f} / {again[2]:5.2f}   mH {spread}   {seconds:.1f} s",
                flush=True,
            )
            figures.append(f"{name} {set_name} {as_of[0]:.1f} / {as_of[1]:.1f} / {as_of[2]:.1f}")
            if not given.orders and as_of[2] < TARGETS.get((name, set_name), 0.0):
                missed.append(f"{name} {set_name}: mH {as_of[2]:.2f}, target {TARGETS[name, set_name]}")
            if seconds > SECONDS.get((name, set_name), np.inf):
                missed.append(f"{name} {set_name}: {seconds:.1f} s, target {SECONDS[name, set_name]}")
    for line in missed:
        print("missed:", line)
    print("; ".join(figures))
    return int(given.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
