"""Accuracy against number of examples: what the first k examples do to a described class, mean over draws.

Per k: accuracy of the classes learned before / of the classes that got k examples / of those still unseen. The last
line has the middle figure of each k. Nothing is chosen on test rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import pairwise

import torch

from stream_cgzsl.benchmark.datasets import data_folder, load
from stream_cgzsl.benchmark.few_shot import draw, few_shot, mean_curve
from stream_cgzsl.learners import BOUNDS, LEARNERS, create
from stream_cgzsl.report.document import Shot

SETS = {"CUB": ("efflite2", None), "BANKING77": ("minilm", True)}
TARGETS = {("CUB", 1): 61.0, ("CUB", 5): 71.0, ("BANKING77", 1): 64.0, ("BANKING77", 5): 70.0}
CHECKED = "evidence"
MOST_FALL = 1.5
"""Points by which the mean curve may fall from one k to the next."""
MOST_BELOW = 1.0
"""Points by which any k may be below no examples at all."""


def missed(name: str, curve: Sequence[Shot]) -> list[str]:
    found = [f"{name}: k = {s.k}: {s.given:.1f}, target {TARGETS[name, s.k]}" for s in curve if _short(name, s)]
    for before, after in pairwise(curve):
        if after.given < before.given - MOST_FALL:
            found.append(f"{name}: falls from {before.given:.1f} (k = {before.k}) to {after.given:.1f} (k = {after.k})")
        if after.given < curve[0].given - MOST_BELOW:
            found.append(f"{name}: {after.given:.1f} with k = {after.k}, {curve[0].given:.1f} without examples")
    return found


def _short(name: str, shot: Shot) -> bool:
    return shot.given < TARGETS.get((name, shot.k), 0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help=f"fail when a figure of {CHECKED!r} misses its target")
    parser.add_argument("--data", help="folder of the data sets; default: CGZSL_DATA or ../shared/data")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--learners", nargs="+", default=["evidence", "episodic"], choices=set(LEARNERS) - set(BOUNDS))
    parser.add_argument("--draws", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)  # as a worker does
    figures, problems = [], []
    for set_name in given.sets:
        extractor, shared = SETS[set_name]
        data = load(data_folder(given.data) / set_name, extractor)
        draws = [draw(data, number) for number in range(given.draws)]
        for name in given.learners:
            curve = mean_curve(list(few_shot(create(name, data.space(0, shared)), data, draws)))
            cells = "   ".join(f"{s.k}: {s.seen:.1f} / {s.given:.1f} / {s.rest:.1f}" for s in curve)
            print(f"{set_name:9} {name:12} {cells}", flush=True)
            figures.append(f"{name} {set_name} " + " ".join(f"{shot.given:.1f}" for shot in curve))
            if name == CHECKED:
                problems += missed(set_name, curve)
    for line in problems:
        print("missed:", line)
    print("; ".join(figures))
    return int(given.check and bool(problems))


if __name__ == "__main__":
    sys.exit(main())
