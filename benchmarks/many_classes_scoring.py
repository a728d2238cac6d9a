"""A scorer with many classes: loading, memory, its rate beside the bare matrix product, and a swap by an update.

For 20,000 and 100,000 classes of 512 numbers, on an SQLite file, each in a process of its own: seconds and peak memory
of loading the generation and preparing it; rows per second of `classify` in batches of 256, and of the matrix product
alone; whether the answers are those of one product over all classes; and the longest answer while updates are swapped
in by another thread, beside the longest without any.

    python benchmarks/many_classes_scoring.py [--check]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from many_classes_served import write_history
from measuring import seconds

from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import load_generation
from stream_cgzsl.windows import ledger

FEATURES, BATCH = 512, 256
CLASSES = (20_000, 100_000)
MOST_BYTES = 5.0
"""Peak memory of a process that loads a generation, in sizes of its vectors."""
LEAST_RATE = 0.5
"""Of the rate of the bare product."""


class Figures(NamedTuple):
    load: float
    gigabytes: float
    rate: float  # rows per second
    product: float  # rows per second
    exact: bool
    slowest: float  # seconds of a batch, without swaps
    slowest_swapping: float


def peak_gigabytes() -> float:
    """Of this process alone: `ru_maxrss` would count the one that started it, too."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e6


def measure(url: str, classes: int) -> Figures:
    topics = Topics("many")
    with connect(url) as bus:
        last, _ = ledger.read_last(bus, topics)
        assert last is not None
        before = peak_gigabytes()
        started = time.perf_counter()
        generation = load_generation(bus, topics, last)
        generation.prepare()
        load = time.perf_counter() - started
    peak = peak_gigabytes() - before
    rows = np.random.default_rng(3).normal(size=(BATCH, FEATURES)).astype(np.float32)
    generation.classify(rows, 2)
    rate = BATCH * 10 / seconds(lambda: [generation.classify(rows, 2) for _ in range(10)])
    columns = np.ascontiguousarray(generation.vectors.T)
    product = np.empty((BATCH, classes), np.float32)
    np.dot(rows, columns, out=product)
    bare = BATCH * 10 / seconds(lambda: [np.dot(rows, columns, out=product) for _ in range(10)])
    exact = (generation.classify(rows, 2).indices[:, 0] == generation.scores(rows).argmax(axis=1)).all()
    return Figures(load, peak, rate, bare, bool(exact), slowest(generation, rows, 0), slowest(generation, rows, 20))


def slowest(generation: Generation, rows: Array, swaps: int) -> float:
    """The longest batch of a second or so, while a thread swaps in so many updates of one class."""
    current, done = [generation], threading.Event()

    def swap() -> None:
        random = np.random.default_rng(4)
        one = np.ones(1, np.int64)
        for _ in range(swaps):
            before = current[0]
            changed = (before.class_ids[int(random.integers(len(before.class_ids)))],)
            row = random.normal(size=(1, FEATURES)).astype(np.float32)
            after = before.after(Delta(before.number + 1, changed, one > 0, row, np.zeros(1, np.float32), one))
            _ = after.digest
            after.prepare()
            current[0] = after
            time.sleep(0.05)
        done.set()

    found: list[float] = []
    thread = threading.Thread(target=swap)
    thread.start()
    while not done.is_set() or len(found) < 10:
        found.append(seconds(lambda: current[0].classify(rows, 2)))
    thread.join()
    return max(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail when a figure is short of its bar")
    parser.add_argument("--one", nargs=2, metavar=("URL", "CLASSES"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one[0], int(given.one[1]))))
        return 0
    lines, short = [], []
    for classes in CLASSES:
        with tempfile.TemporaryDirectory() as name:
            url, topics = f"sqlite:///{Path(name) / 'many.db'}", Topics("many")
            with connect(url) as bus:
                bus.create(topics.specs(1))
                write_history(bus, topics, classes, 3)
            command = [sys.executable, __file__, "--one", url, str(classes)]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        found = Figures(*json.loads(done.stdout))
        size = classes * FEATURES * 4 / 1e9
        lines.append(
            f"{classes:,} classes: loaded in {found.load:.1f} s with {found.gigabytes:.2f} GB, "
            f"{found.gigabytes / size:.1f} times its vectors; {found.rate:,.0f} rows/s, "
            f"{found.rate / found.product:.2f} of the bare product; exact: {found.exact}; slowest batch "
            f"{1000 * found.slowest:.0f} ms, {1000 * found.slowest_swapping:.0f} ms while updates are swapped in"
        )
        short += [line for line in lines[-1:] if not found.exact or found.rate < LEAST_RATE * found.product]
        short += [line for line in lines[-1:] if found.gigabytes > MOST_BYTES * size]
    print("; ".join(lines))
    return int(given.check and bool(short))


if __name__ == "__main__":
    sys.exit(main())
