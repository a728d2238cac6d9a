"""A flood: a million features of another encoder in one task, with good ones among them, on SQLite.

Prints the learner's peak memory, how many windows it took, and what became of the records.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from measuring import peak_memory_of

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.history.check import Findings, check
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import Attribute, Feature, encode
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.producer import send_boundary
from stream_cgzsl.workers import supervisor

TOPICS = Topics("flood")
RIGHT, WRONG = 64, 48
GOOD_EVERY = 1000
TARGET = 1100.0
"""Megabytes; a learner without anything to do takes about 790, most of it torch."""


def send(bus: Bus, bad: int) -> int:
    """Writes the flood and its boundary; returns how many good features are in it."""
    random = np.random.default_rng(0)
    wrong = encode(Feature(class_id="a", vector=random.random(WRONG, np.float32)))
    good = 0
    with bus.writer() as writer:
        for class_id in "ab":
            writer.send(TOPICS["attributes"], encode(Attribute(class_id=class_id, vector=random.random(8))))
        for number in range(bad):
            writer.send(TOPICS["features"], wrong, number % 4)
            if number % GOOD_EVERY == 0:
                event = Feature(class_id="ab"[good % 2], vector=random.random(RIGHT, np.float32), id=str(good))
                writer.send(TOPICS["features"], encode(event), number % 4)
                good += 1
    send_boundary(bus, TOPICS, "flood")
    return good


def learn(settings: Settings, bus: Bus, log: Path) -> float:
    """Runs a learner until the boundary's window is committed; returns its peak memory."""
    with log.open("wb") as output:
        process = supervisor.start("learn", settings, output)
    try:
        while True:
            most = peak_memory_of(process)
            if process.poll() is not None:
                raise SystemExit(f"the learner ended with {process.returncode}:\n{log.read_text()}")
            last, _ = ledger.read_last(bus, TOPICS)
            if last is not None and last.policy == "marker":
                return most
            threading.Event().wait(0.2)
    finally:
        supervisor.end([process])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help=f"fail above {TARGET:g} MB, or if a record is lost")
    parser.add_argument("--records", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{directory}/flood.db"
        with connect(url) as bus:
            bus.create(TOPICS.specs(4))
            good = send(bus, given.records)
            settings = Settings(
                bus=url, prefix=TOPICS.prefix, attributes=8, features=RIGHT, learner="closed-form", quiet_seconds=1e6
            )
            started = time.perf_counter()
            most = learn(settings, bus, Path(directory) / "learner.log")
            seconds = time.perf_counter() - started
            found: Findings = check(bus, TOPICS)
    sound = not found.problems and found.dead == given.records and found.accepted == good + 2 + 1
    print(
        f"{given.records} bad records, {good} good ones: {found.windows} windows in {seconds:.0f} s, "
        f"peak {most:.0f} MB; {found.dead} in dead-letters, {found.accepted - 3} learned, "
        f"{len(found.problems)} problems"
    )
    return int(given.check and not (sound and most <= TARGET))


if __name__ == "__main__":
    sys.exit(main())
