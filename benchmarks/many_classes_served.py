"""Many classes end to end: how soon a change of one class is served, and what a long history of such changes costs.

A learner and a scorer run as processes on a Kafka broker, with 10,000 classes of 512 numbers. Then a class is
described, and one example of another class is sent, each in a window of its own (`--count 1`): seconds until the scorer
answers with that generation. And: seconds until a follower has the newest generation of a stream with ten small
windows, and of one with ten thousand.

    python benchmarks/many_classes_served.py [--check] [--classes 10000] [--windows 10000] [--bus kafka://...]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from measuring import kafka_at

from stream_cgzsl.bus import Bus, TopicPartition, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import Array, Genesis, LedgerRecord, Prediction, Sample, decode, encode
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.follower import Follower
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import commit_of
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.commit import Commit, write_commit
from stream_cgzsl.windows.producer import Producer
from stream_cgzsl.workers import supervisor

FEATURES, ATTRIBUTES, EXAMPLES = 512, 300, 5
SERVED_SECONDS = 3.0
START_RATIO = 3.0
PATIENCE_SECONDS = 600.0


class World:
    """Class means that follow linearly from attributes, and noise."""

    def __init__(self, classes: int) -> None:
        self.random = np.random.default_rng(1)
        self.attributes = self.random.normal(size=(classes, ATTRIBUTES)).astype(np.float32)
        turn = self.random.normal(size=(ATTRIBUTES, FEATURES)).astype(np.float32) / ATTRIBUTES**0.5
        self.means = self.attributes @ turn

    def rows(self, number: int, rows: int) -> Array:
        noise = self.random.normal(size=(rows, FEATURES)).astype(np.float32)
        return np.asarray(self.means[number] + noise, np.float32)


class Asker:
    """Asks until a generation answers."""

    def __init__(self, bus: Bus, topics: Topics) -> None:
        self._bus, self._topics = bus, topics
        topic = topics["predictions"]
        self._reader = bus.reader({TopicPartition(topic, p): end for p, end in bus.end_offsets(topic).items()})
        self._writer = bus.writer()
        self._asked = 0

    def until(self, generation: int, row: Array) -> float:
        """When the first answer by this generation or a later one was there."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            self._asked += 1
            self._writer.send(self._topics["samples"], encode(Sample(request_id=f"q{self._asked}", vector=row)))
            self._writer.flush()
            for item in self._reader.poll(0.1):
                answer = decode("predictions", item.key, item.value, item.headers)
                if isinstance(answer, Prediction) and (answer.generation or 0) >= generation:
                    return time.monotonic()
        raise SystemExit(f"generation {generation} was not served in {PATIENCE_SECONDS:g} s")

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


@contextmanager
def worker(kind: str, settings: Settings, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (directory / f"{kind}.log").open("ab") as log:
        process = supervisor.start(kind, settings, log)
    try:
        yield process
    finally:
        supervisor.end([process])


def wait_for(bus: Bus, topics: Topics, number: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (last := ledger.read_last(bus, topics)[0]) is None or last.number < number:
        if time.monotonic() > deadline:
            raise SystemExit(f"window {number} was not committed in {PATIENCE_SECONDS:g} s")
        time.sleep(0.1)


def served(url: str, directory: Path, classes: int) -> tuple[float, float]:
    """Seconds from sending to the first answer: of a description, and of one example of another class."""
    topics, world = Topics("many"), World(classes + 1)
    first = Settings(bus=url, prefix="many", attributes=ATTRIBUTES, features=FEATURES, signed=True, quiet_seconds=3600)
    counting = first.model_copy(update={"quiet_seconds": 0.5, "count": 1})
    with connect(url) as bus:
        bus.create(topics.specs(2))
        with Producer(bus, topics) as producer:
            with worker("learn", first, directory):
                for number in range(classes):
                    producer.describe(f"class-{number:06}", world.attributes[number])
                for number in range(classes * 9 // 10):
                    producer.teach(f"class-{number:06}", world.rows(number, EXAMPLES))
                producer.end_task()
                wait_for(bus, topics, 1)
            sample, took = world.rows(0, 1)[0], []
            with (
                worker("learn", counting, directory),
                worker("score", counting, directory),
                closing(Asker(bus, topics)) as asker,
            ):
                producer.describe("class-first", world.attributes[classes])  # both processes are up when it is served
                producer.flush()
                asker.until(2, sample)
                for number in (3, 4):
                    started = time.monotonic()
                    if number == 3:
                        producer.describe("class-second", -world.attributes[classes])
                    else:
                        producer.teach("class-000007", world.rows(7, 1))
                    producer.flush()
                    took.append(asker.until(number, sample) - started)
    return took[0], took[1]


def write_history(bus: Bus, topics: Topics, classes: int, windows: int) -> None:
    """A whole generation and so many updates of one class each, as a learner would commit them."""
    random = np.random.default_rng(2)
    ids = tuple(f"class-{number:06}" for number in range(classes))
    generation = Generation(
        1,
        ids,
        np.ones(classes, bool),
        random.normal(size=(classes, FEATURES)).astype(np.float32),
        np.zeros(classes, np.float32),
        np.zeros(FEATURES, np.float32),
        examples=np.ones(classes, np.int64),
        incremental=True,
    )
    record = LedgerRecord(number=0, kind="genesis", reason="made", configuration_digest="0" * 64, code="0")
    genesis = Genesis(attributes=ATTRIBUTES, features=FEATURES, signed=True)
    with bus.publisher("made") as publisher:
        before = write_commit(publisher, topics, Commit(record.model_copy(update={"genesis": genesis})))
        for number in range(1, windows + 2):
            if number > 1:
                row = random.normal(size=(1, FEATURES)).astype(np.float32)
                changed = (ids[int(random.integers(classes))],)
                one = np.ones(1, np.int64)
                generation = generation.after(
                    Delta(number, changed, one.astype(bool), row, np.zeros(1, np.float32), one)
                )
            made = record.model_copy(update={"number": number, "kind": "train", "seen": classes})
            before = write_commit(publisher, topics, commit_of(made, generation, before=before))


def start_seconds(url: str, prefix: str, classes: int, windows: int) -> float:
    """From a follower's first request to its generation, in a stream with a history of so many windows."""
    topics = Topics(prefix)
    with connect(url) as bus:
        bus.create(topics.specs(1))
        write_history(bus, topics, classes, windows)
    started = time.perf_counter()
    with connect(url) as bus, closing(Follower(bus, topics)) as follower:
        assert follower.generation is not None and follower.generation.number == windows + 1
        follower.generation.prepare()
        return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail when a figure is short of its bar")
    parser.add_argument("--bus", help="a Kafka cluster; default: a broker of its own")
    parser.add_argument("--classes", type=int, default=10_000)
    parser.add_argument("--windows", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, kafka_at(given.bus, Path(name) / "broker") as url:
        described, example = served(url, Path(name), given.classes)
        few = start_seconds(url, "few", 1000, 10)
        many = start_seconds(url, "long", 1000, given.windows)
    print(
        f"{given.classes:,} classes: described and served in {described:.2f} s, one example in {example:.2f} s; "
        f"a scorer starts in {few:.2f} s after 10 windows of 1,000 classes, in {many:.2f} s after {given.windows:,}"
    )
    return int(given.check and (max(described, example) > SERVED_SECONDS or many > START_RATIO * few + 0.5))


if __name__ == "__main__":
    sys.exit(main())
