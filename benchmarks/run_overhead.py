"""What a run through a SQLite bus costs beside the library alone on the same windows: CUB, online, the default learner.

The library fits every window and evaluates every generation, in one thread. The run also feeds, reads, commits, evaluates
and writes its report, through a file. Rounds take turns; the ratio is the median of the ratios within a round, because
machines are noisy.

    python benchmarks/run_overhead.py [--check] [--rounds 5] [--dataset CUB --features efflite2]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: as the command has it

from stream_cgzsl.benchmark import scores
from stream_cgzsl.benchmark.datasets import load
from stream_cgzsl.benchmark.run_folder import RunFolder
from stream_cgzsl.benchmark.run_request import RunRequest
from stream_cgzsl.benchmark.running import run
from stream_cgzsl.benchmark.settings import plan_for
from stream_cgzsl.environment import prepare
from stream_cgzsl.learners import create
from stream_cgzsl.settings import Settings

BAR = 1.25


class Nobody:
    """An audience that does not look."""

    def begins(self, *_: object) -> None: ...

    def doing(self, *_: object) -> None: ...

    def learned(self, *_: object) -> None: ...


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help=f"fail when the ratio is over {BAR}")
    parser.add_argument("--data", help="folder of the data sets; default: CGZSL_DATA or ../shared/data")
    parser.add_argument("--dataset", default="CUB")
    parser.add_argument("--features", default="efflite2")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    prepare(1)
    data = load(given.dataset, given.features, under=given.data)
    plan, settings = plan_for(data, "online"), Settings()

    def alone() -> None:
        found = scores.run(create(settings.learner, data.space(settings.seed)), data, plan)
        print(f"  library {found.seconds_training:6.2f} s of training, {found.as_of}")

    def through_a_bus() -> None:
        with tempfile.TemporaryDirectory(prefix="cgzsl-bench-") as directory:
            found = run(RunRequest(data, plan, settings), RunFolder(Path(directory) / "run"), Nobody())
        print(f"  run     {found.seconds_training:6.2f} s of training, mH {found.as_of.mH:.1f}")

    ratios = []
    for number in range(given.rounds):
        turns = [alone, through_a_bus] if number % 2 else [through_a_bus, alone]
        took = {turn: seconds(turn) for turn in turns}
        ratios.append(took[through_a_bus] / took[alone])
        print(f"round {number + 1}: library {took[alone]:.2f} s, run {took[through_a_bus]:.2f} s", flush=True)
    ratio = statistics.median(ratios)
    print(f"a run takes {ratio:.2f} of the library alone")
    return int(given.check and ratio > BAR)


if __name__ == "__main__":
    sys.exit(main())
