"""What each part of the paper's system brings: the eight rows of the paper's ablation table, online setting.

    python benchmarks/ablation.py --learner adversarial --sets CUB BANKING77
    python benchmarks/ablation.py --learner paper --sets CUB

For `adversarial` also each of the six losses dropped on its own. Final weights of each window, the full test set, the
mean over seeds; the paper's own figures, on ResNet-101 features of CUB, stand beside. The last line is mH by row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

import numpy as np

from stream_cgzsl.benchmark.datasets import Dataset, data_folder, load
from stream_cgzsl.benchmark.scores import run
from stream_cgzsl.benchmark.settings import plan_for
from stream_cgzsl.learners import create

SETS = {"CUB": ("efflite2", None), "BANKING77": ("minilm", True)}
"""What a user states: the file of features, and whether class vectors live in the feature space."""

ROWS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "all": ((), "44.09 / 53.57 / 48.03"),
    "w/o replay": (("replay",), "1.89 / 2.74 / 2.21"),
    "w/o L_sal": (("sal",), "33.83 / 49.62 / 40.10"),
    "w/o L_nuclear": (("nuclear",), "37.66 / 42.36 / 39.53"),
    "w/o L_sal and L_nuclear": (("sal", "nuclear"), "14.14 / 36.52 / 19.88"),
    "w/o L_rcl and L_pcl": (("rcl", "pcl"), "13.79 / 9.50 / 10.72"),
    "w/o L_snl": (("snl",), "37.53 / 45.66 / 40.92"),
    "w/o replay, L_rcl and L_pcl": (("replay", "rcl", "pcl"), "0.53 / 0.81 / 0.58"),
}
"""What is switched off, and what the paper reports on CUB."""

ALONE: Mapping[str, tuple[tuple[str, ...], str]] = {
    f"w/o L_{'GAN' if loss == 'gan' else loss}": ((loss,), "") for loss in ("gan", "rcl", "pcl")
}
"""The losses that the paper does not drop on their own."""

BARS = {"CUB": 65.0, "BANKING77": 88.0}
"""For `adversarial` with everything on."""


def measured(learner: str, off: tuple[str, ...], data: Dataset, seeds: int) -> tuple[float, float, float]:
    """mSA, mUA and mH as of each window."""
    options = {part: 0 if part == "replay" else 0.0 for part in off}
    found = []
    for seed in range(seeds):
        made = create(learner, data.space(seed, SETS[data.name][1]), options)
        scores = run(made, data, plan_for(data, "online")).as_of
        found.append((scores.mSA, scores.mUA, scores.mH))
    seen, unseen, harmonic = np.mean(found, axis=0)
    return float(seen), float(unseen), float(harmonic)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail when adversarial with everything on is short")
    parser.add_argument("--data", help="folder of the data sets; default: CGZSL_DATA or ../shared/data")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--learner", default="adversarial", choices=["paper", "authors-code", "adversarial"])
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    rows = {**ROWS, **(ALONE if given.learner == "adversarial" else {})}
    figures, short = [], False
    for set_name in given.sets:
        data = load(data_folder(given.data) / set_name, SETS[set_name][0])
        print(f"{given.learner}, {set_name}: mSA / mUA / mH as of each window (the paper on CUB)")
        harmonics = {}
        for row, (off, reported) in rows.items():
            seen, unseen, harmonics[row] = measured(given.learner, off, data, given.seeds)
            beside = f"   ({reported})" if reported else ""
            print(f"  {row:28} {seen:5.2f} / {unseen:5.2f} / {harmonics[row]:5.2f}{beside}", flush=True)
        figures.append(f"{set_name} " + ", ".join(f"{row} {harmonic:.1f}" for row, harmonic in harmonics.items()))
        short |= given.learner == "adversarial" and harmonics["all"] < BARS[set_name]
    print(f"{given.learner} mH: " + "; ".join(figures))
    return int(given.check and short)


if __name__ == "__main__":
    sys.exit(main())
