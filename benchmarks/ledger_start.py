"""How a learner starts behind a short and a long ledger, on SQLite: seconds until it waits for events, and memory.

The ledgers are written directly: windows without records, the newest one with a snapshot.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import Future
from pathlib import Path

import numpy as np
from measuring import peak_memory_of

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.history.publish import configuration_fields, publish_window
from stream_cgzsl.history.stream_learner import Configuration, StreamLearner
from stream_cgzsl.runtime.environment import environment
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import LedgerRecord, Message, Range, encode
from stream_cgzsl.serving.generation_io import commit_of
from stream_cgzsl.windows.commit import Commit, write_commit
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.window import Window
from stream_cgzsl.workers import supervisor

TOPICS = Topics("start")
CLASSES, ATTRIBUTES, FEATURES, PARTITIONS = 10, 8, 2048, 4
SHORT, LONG = 20, 200_000
RATIO, SECONDS, MEGABYTES = 2.0, 1.0, 30.0


def settings_at(url: str) -> Settings:
    return Settings(
        bus=url,
        prefix=TOPICS.prefix,
        attributes=ATTRIBUTES,
        features=FEATURES,
        learner="closed-form",
        quiet_seconds=1e6,
    )


def write_ledger(bus: Bus, windows: int) -> int:
    """Writes the genesis and so many windows; returns the size of a record."""
    bus.create(TOPICS.specs(PARTITIONS))
    settings = settings_at(bus.url)
    configuration = Configuration(settings.learner, settings.options, int(settings.memory_gb * 1e9))
    learner = StreamLearner(settings.genesis(), configuration, "cpu")
    random = np.random.default_rng(0)
    vectors = {f"class {n}": random.random(ATTRIBUTES, np.float32) for n in range(CLASSES)}
    rows = {class_id: random.random((5, FEATURES), np.float32) for class_id in vectors}
    nothing = {partition: Range(start=0, end=0) for partition in range(PARTITIONS)}
    fields = {
        "ranges": {"attributes": nothing, "features": nothing, "control": {0: Range(start=0, end=0)}},
        "holdout": dict.fromkeys(range(PARTITIONS), 0),
        "code": "0",
        "environment": environment("cpu"),
        "configured": 0,
    }
    outcome = learner.learn(
        "train", Gathered(Window.from_arrays(windows, vectors, rows), {}, [], Future(), frozenset())
    )
    genesis = LedgerRecord(
        number=0,
        kind="genesis",
        reason="genesis",
        genesis=settings.genesis(),
        **configuration_fields(configuration, None),
        **fields,
    )
    last = LedgerRecord(
        number=windows,
        kind="train",
        policy="count",
        reason="count",
        **configuration_fields(configuration, configuration),
        **fields,
    )
    like = encode(commit_of(last, outcome.generation).record)
    assert like.value is not None
    head, tail = like.value.split(b'"number":%d,' % windows)
    with bus.publisher("start.learner") as publisher:
        write_commit(publisher, TOPICS, Commit(genesis))
        with bus.writer() as writer:
            for number in range(1, windows):
                value = b'%b"number":%d,%b' % (head, number, tail)
                writer.send(TOPICS["windows"], Message(b"%d" % number, value, like.headers, None))
        publish_window(publisher, TOPICS, last, learner, outcome, frozenset(), learner.snapshot(), [])
    return len(like.value)


def start(url: str, log: Path) -> tuple[float, float]:
    """Starts a learner; the seconds until it waits for events, and its peak memory in megabytes by then."""
    started = time.perf_counter()
    with log.open("wb") as output:
        process = supervisor.start("learn", settings_at(url), output)
    try:
        while "waiting for events" not in log.read_text():
            if process.poll() is not None:
                raise SystemExit(f"the learner ended with {process.returncode}:\n{log.read_text()}")
            time.sleep(0.02)
        return time.perf_counter() - started, peak_memory_of(process)
    finally:
        supervisor.end([process])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"fail above {RATIO:g} times the short start + {SECONDS:g} s, or {MEGABYTES:g} MB more",
    )
    parser.add_argument("--windows", type=int, nargs=2, default=[SHORT, LONG], metavar=("SHORT", "LONG"))
    parser.add_argument("--starts", type=int, default=3)
    given = parser.parse_args()
    found: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as directory:
        for windows in given.windows:
            url = f"sqlite:///{directory}/{windows}.db"
            with connect(url) as bus:
                size = write_ledger(bus, windows)
            starts = [start(url, Path(directory) / "learner.log") for _ in range(given.starts)]
            found.append((min(seconds for seconds, _ in starts), min(memory for _, memory in starts)))
    (short, little), (long, much) = found
    print(
        f"records of {size} bytes; {given.windows[0]} windows: {short:.2f} s, {little:.0f} MB; "
        f"{given.windows[1]} windows: {long:.2f} s, {much:.0f} MB"
    )
    return int(given.check and (long > RATIO * short + SECONDS or much > little + MEGABYTES))


if __name__ == "__main__":
    sys.exit(main())
