"""What each part of `episodic` contributes: as-of mH without it, on CUB and BANKING77, mean over seeds."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import numpy as np

from stream_cgzsl.benchmark.datasets import Dataset, data_folder, load
from stream_cgzsl.benchmark.protocols import plan_for
from stream_cgzsl.benchmark.scores import run
from stream_cgzsl.learners import create

SETS = {"CUB": ("efflite2", None), "BANKING77": ("minilm", True)}

ROWS: dict[str, dict[str, bool]] = {
    "all": {},
    "no square root": {},
    "cosine score": {"score_form": False},
    "no attribute weights": {"weights": False},
    "no class vector prior": {"prior": False},
    "no whitening": {"whitening": False},
    "no RBF part": {"rbf": False},
}


def mean_harmonic(data: Dataset, row: str, seeds: int) -> float:
    found: list[float] = []
    for seed in range(seeds):
        space = data.space(seed, SETS[data.name][1])
        if row == "no square root":
            space = replace(space, signed=True)  # signed features are not transformed
        mean = run(create("episodic", space, ROWS[row]), data, plan_for(data, "online")).as_of.mH
        assert mean is not None, "both data sets have classes of both kinds"
        found.append(mean)
    return float(np.mean(found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="fail when leaving out a part improves mH by a point or more"
    )
    parser.add_argument("--data", help="folder of the data sets; default: CGZSL_DATA or ../shared/data")
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    sets = {name: load(data_folder(given.data) / name, SETS[name][0]) for name in SETS}
    table: dict[str, dict[str, float]] = {}
    for row in ROWS:
        table[row] = {name: mean_harmonic(data, row, given.seeds) for name, data in sets.items()}
        print(f"{row:22}", "   ".join(f"{name} {value:.2f}" for name, value in table[row].items()), flush=True)
    print("; ".join(f"{row} {' / '.join(f'{v:.1f}' for v in table[row].values())}" for row in ROWS))
    worse = any(table[row][name] >= table["all"][name] + 1 for row in ROWS for name in sets)
    return int(given.check and worse)


if __name__ == "__main__":
    sys.exit(main())
