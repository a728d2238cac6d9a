"""What a window costs the default learner among many classes: one described class, one example, a hundred, a refresh.

Synthetic worlds of 300 attributes. Nine classes in ten have five examples; the learner gets their moments, not their
rows. Each world has a process of its own, so that its peak of memory is its own. The last line has the figures.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch

from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Learner, Snapshot, Space
from stream_cgzsl.learners.kernel.evidence import FORMAT
from stream_cgzsl.learners.snapshots import together
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.window import Window

ATTRIBUTES = 300
EXAMPLES = 5
WORLDS = ((512, 1_000), (512, 5_000), (512, 20_000), (512, 100_000), (2048, 20_000))
REPEATS = 7

TARGETS = {20_000: (0.2, 45.0), 100_000: (0.5, 90.0)}
"""Of worlds of 512 features, by number of classes: most seconds of a small window (a described class, one example), and
of a refresh."""


class Figures(NamedTuple):
    """Seconds (for windows the median), and bytes of the rows they publish."""

    described: float
    one: float
    hundred: float
    refresh: float
    bytes_one: int
    bytes_hundred: int
    bytes_refresh: int
    gigabytes_before: float  # peak of the process with the world and the learner's state, before anything is learned
    gigabytes: float  # peak at the end


class ManyClasses:
    """Class means are an image of the attributes and something of their own; features vary alike in all classes."""

    def __init__(self, features: int, classes: int) -> None:
        self.random = np.random.default_rng(0)
        self.features, self.classes = features, classes
        self.image = self.random.normal(size=(ATTRIBUTES, features)).astype(np.float32) / (2 * ATTRIBUTES) ** 0.5
        self.ids = [f"class-{place:06}" for place in range(classes)]
        self.attributes = self.random.standard_normal((classes, ATTRIBUTES), dtype=np.float32)
        self.taught = np.flatnonzero(np.arange(classes) % 10 > 0)

    def mean(self, attributes: Array) -> Array:
        own = self.random.standard_normal((len(attributes), self.features), dtype=np.float32)
        return np.asarray(attributes @ self.image + 0.3 * own, np.float32) / np.float32(self.features**0.5)

    def space(self) -> Space:
        return Space(ATTRIBUTES, self.features, signed=True)

    def snapshot(self) -> Snapshot:
        """As of a learner that has seen `EXAMPLES` examples of each taught class, and has no frame yet."""
        taught, spread = len(self.taught), 0.5 / self.features
        counts = np.zeros(self.classes)
        counts[self.taught] = EXAMPLES
        freedom = taught * (EXAMPLES - 1)
        scatter = freedom * spread * np.eye(self.features)
        state: dict[str, Array] = {
            "attributes": self.attributes,
            "means": self.mean(self.attributes[self.taught]).astype(np.float64),
            "counts": counts,
            "examples": counts.astype(np.int64),
            "clocks": np.zeros(self.classes, np.int64),
            "scatter": scatter[np.triu_indices(self.features)],
        }
        totals = {"freedom": freedom, "examples": taught * EXAMPLES, "taught": taught, "clock": 1, "refreshes": 0}
        meta = {"class_ids": self.ids, **totals, "at_refresh": [0, 0, 0]}
        parts = {"state": Snapshot(state, meta), "format": Snapshot({}, {"number": FORMAT})}
        return together("evidence", self.space(), parts)

    def window(self, number: int, described: int = 0, taught: int = 0, rows: int = 0) -> Window:
        """Classes that are new, and `rows` examples of each of some that are known."""
        vectors = self.random.standard_normal((described, ATTRIBUTES), dtype=np.float32)
        new: dict[str, Array] = {f"new-{number}-{i}": vector for i, vector in enumerate(vectors)}
        chosen = self.random.choice(self.taught, taught, replace=False)
        noise = (
            self.random.standard_normal((taught, rows, self.features), dtype=np.float32) * (0.5 / self.features) ** 0.5
        )
        means = self.mean(self.attributes[chosen])
        return Window.from_arrays(
            number, new, {self.ids[c]: rows for c, rows in zip(chosen.tolist(), means[:, None] + noise, strict=True)}
        )


def gigabytes() -> float:
    """The peak memory of this process so far; `ru_maxrss` would count the one that started it, too."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e6


def size(made: Generation | Delta) -> int:
    assert made.examples is not None
    return sum(array.nbytes for array in (made.vectors, made.biases, made.seen, made.examples))


def timed(learner: Learner, window: Window) -> tuple[float, Generation | Delta]:
    started = perf_counter()
    made = learner.fit(window)
    return perf_counter() - started, made


def measure(features: int, classes: int) -> Figures:
    torch.set_num_threads(1)  # as a worker does
    world = ManyClasses(features, classes)
    learner = create("evidence", world.space())
    learner.restore(world.snapshot())
    before = gigabytes()
    refresh, whole = timed(learner, world.window(1, taught=1, rows=1))
    assert isinstance(whole, Generation)
    number, seconds, sizes = 1, [], []
    for described, taught, rows in ((1, 0, 0), (0, 1, 1), (0, 50, 2)):
        found: list[tuple[float, Generation | Delta]] = []
        for _ in range(REPEATS):
            number += 1
            found.append(timed(learner, world.window(number, described, taught, rows)))
        updates = [(spent, size(made)) for spent, made in found if isinstance(made, Delta)]  # a small world refreshes
        seconds.append(median(spent for spent, _ in updates))
        sizes.append(updates[0][1])
    described_one, one, hundred = seconds
    return Figures(described_one, one, hundred, refresh, sizes[1], sizes[2], size(whole), before, gigabytes())


def in_a_process(features: int, classes: int) -> Figures:
    command = [sys.executable, __file__, "--one", str(features), str(classes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return Figures(*json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a figure misses its target")
    parser.add_argument("--most", type=int, default=100_000, help="leave out worlds of more classes")
    parser.add_argument("--one", type=int, nargs=2, metavar=("FEATURES", "CLASSES"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*given.one)))
        return 0
    print("features classes | described one example 100 of 50   refresh (s) | published KB: one 100 whole MB | peak GB")
    figures, missed = [], []
    for features, classes in WORLDS:
        if classes > given.most:
            continue
        found = in_a_process(features, classes)
        print(
            f"{features:8} {classes:7} | {found.described:9.3f} {found.one:11.3f} {found.hundred:9.3f} "
            f"{found.refresh:9.1f}     | {found.bytes_one / 1e3:17.1f} {found.bytes_hundred / 1e3:5.1f} "
            f"{found.bytes_refresh / 1e6:8.1f} | {found.gigabytes:.2f} (of it {found.gigabytes_before:.2f} before)",
            flush=True,
        )
        figures.append(
            f"{features}x{classes}: described {found.described:.3f} s, one example {found.one:.3f} s, "
            f"100 of 50 {found.hundred:.3f} s, refresh {found.refresh:.1f} s"
        )
        small, refresh = TARGETS.get(classes, (0.0, 0.0)) if features == 512 else (0.0, 0.0)
        for what, spent, most in (
            ("described", found.described, small),
            ("one example", found.one, small),
            ("refresh", found.refresh, refresh),
        ):
            if most and spent > most:
                missed.append(f"{features}x{classes} {what}: {spent:.3f} s, target {most}")
    for line in missed:
        print("missed:", line)
    print("; ".join(figures))
    return int(given.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
