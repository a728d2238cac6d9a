"""The cost of a run through a SQLite bus, relative to the library alone: CUB, online, the default learner.

The library fits every window and evaluates every generation, in one thread. The run also feeds, reads, commits,
evaluates and writes its report, through a file. Both take turns; the ratio is the median of the ratios within a round,
because machines are noisy.

    python benchmarks/run_overhead.py [--check] [--rounds 5] [--dataset CUB --features efflite2]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported: as in the command

from measuring import seconds

from stream_cgzsl.benchmark import scores
from stream_cgzsl.benchmark.datasets import load
from stream_cgzsl.benchmark.protocols import plan_for
from stream_cgzsl.benchmark.runs.folder import RunFolder
from stream_cgzsl.benchmark.runs.request import RunRequest
from stream_cgzsl.benchmark.runs.run import run
from stream_cgzsl.learners import create
from stream_cgzsl.runtime.environment import prepare_torch
from stream_cgzsl.runtime.settings import Settings

TARGET = 1.25


class Silent:
    """An observer that ignores everything."""

    def run_started(self, *_: object) -> None: ...

    def progress(self, *_: object) -> None: ...

    def task_done(self, *_: object) -> None: ...


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help=f"fail when the ratio is over {TARGET}")
    parser.add_argument("--data", help="folder of the data sets; default: CGZSL_DATA or ../shared/data")
    parser.add_argument("--dataset", default="CUB")
    parser.add_argument("--features", default="efflite2")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    prepare_torch(1)
    data = load(given.dataset, given.features, under=given.data)
    plan, settings = plan_for(data, "online"), Settings()

    def library() -> None:
        found = scores.run(create(settings.learner, data.space(settings.seed)), data, plan)
        print(f"  library {found.seconds_training:6.2f} s of training, {found.as_of}")

    def through_a_bus() -> None:
        with tempfile.TemporaryDirectory(prefix="cgzsl-bench-") as directory:
            found = run(RunRequest(data, plan, settings), RunFolder(Path(directory) / "run"), Silent())
        print(f"  run     {found.seconds_training:6.2f} s of training, mH {found.as_of.mH:.1f}")

    ratios = []
    for number in range(given.rounds):
        turns = [library, through_a_bus] if number % 2 else [through_a_bus, library]
        took = {turn: seconds(turn) for turn in turns}
        ratios.append(took[through_a_bus] / took[library])
        print(f"round {number + 1}: library {took[library]:.2f} s, run {took[through_a_bus]:.2f} s", flush=True)
    ratio = statistics.median(ratios)
    print(f"a run takes {ratio:.2f} of the library alone")
    return int(given.check and ratio > TARGET)


if __name__ == "__main__":
    sys.exit(main())
