"""A soak test: learners and scorers are killed at random while records keep coming.

Two learners (one on standby) and two scorers run as processes; at random times one of the four is killed with SIGKILL
and started again, while descriptions, features, duplicates, bad records, task boundaries and samples are sent. In the
end every acknowledged record must be in exactly one window or be a dead letter, every sample answered, the ledger valid
(`check`) and every generation reproducible byte for byte (`replay --verify`).

    python benchmarks/soak.py [--kills 50] [--windows 40] [--bus kafka|sqlite] [--seed 1]
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measuring import kafka_at

from stream_cgzsl.benchmark.synthetic_world import World
from stream_cgzsl.bus import Bus, Receipt, TopicPartition, Writer, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.cli import main as command
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import Attribute, Boundary, Feature, Message, Prediction, Sample, decode, encode
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.offsets import DATA_ROLES
from stream_cgzsl.workers import supervisor

SESSION_MS = 3000
TOPICS = Topics("soak")
WORLD = World(classes=40, attributes=16, features=32)
SETTLE_SECONDS = 120.0
ROLES = ("learn", "learn", "score", "score")


class Fleet:
    """The workers; one that was killed is started again at the next `tend`."""

    def __init__(self, settings: Settings, directory: Path, rng: random.Random) -> None:
        self._settings = settings
        self._directory = directory
        self._rng = rng
        self._workers = [self._start(number) for number in range(len(ROLES))]
        self.kills = 0

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        with (self._directory / f"{ROLES[number]}-{number}.log").open("ab") as log:
            return supervisor.start(ROLES[number], self._settings, log)

    def tend(self) -> None:
        """Starts workers that have ended again, as a supervisor would: killed ones, and learners that were fenced."""
        for number, worker in enumerate(self._workers):
            if worker.poll() is not None:
                if worker.returncode not in (-signal.SIGKILL, 6):
                    raise SystemExit(f"{ROLES[number]} ended with exit code {worker.returncode}: see {self._directory}")
                self._workers[number] = self._start(number)

    def kill(self) -> None:
        """Kills a worker: a learner twice as often as a scorer."""
        number = self._rng.choice([0, 1, 0, 1, 2, 3])
        self._workers[number].kill()
        self._workers[number].wait()
        self.kills += 1

    def end(self) -> None:
        supervisor.end(self._workers)


class Feeder:
    """Writes tasks and samples, and keeps the receipts of what was acknowledged."""

    def __init__(self, bus: Bus, rng: random.Random) -> None:
        self._bus = bus
        self._rng = rng
        self._writer: Writer = bus.writer()
        self._task = 0
        self._described: list[str] = []
        self._sent: list[Message] = []  # features of this task, some of which are sent again
        self._rows: dict[str, int] = {}
        self.inputs: list[tuple[str, Receipt]] = []
        self.good = self.duplicates = self.bad = 0
        self.samples: set[str] = set()

    def describe(self, count: int) -> None:
        new = WORLD.classes[len(self._described) : len(self._described) + count]
        for class_id in new:
            self._input("attributes", encode(Attribute(class_id=class_id, vector=WORLD.attribute(class_id))))
            self.good += 1
        self._writer.flush()  # a class must be described before its first feature
        self._described += new

    def send_features(self) -> None:
        """Sends a few features, sometimes a duplicate or a bad record, and a few samples. A boundary must follow."""
        for _ in range(self._rng.randint(1, 12)):
            chance = self._rng.random()
            if chance < 0.03:
                self._input("features", Message(b"x", self._rng.randbytes(9)))
                self.bad += 1
            elif chance < 0.08 and self._sent:
                self._input("features", self._rng.choice(self._sent))
                self.duplicates += 1
            else:
                self._sent.append(self._feature())
                self._input("features", self._sent[-1])
                self.good += 1
        self.ask()

    def ask(self) -> None:
        """Sends a few samples, or none; may be called at any time."""
        for _ in range(self._rng.randint(0, 4)):
            name = f"sample-{len(self.samples)}"
            row = WORLD.draw(self._rng.choice(WORLD.classes), 1, 2)[0]
            message = encode(Sample(request_id=name, vector=row))
            if self._rng.random() < 0.05:
                message = message._replace(value=(message.value or b"")[:7])
            self._writer.send(TOPICS["samples"], message)
            self.samples.add(name)
        self._writer.flush()

    def _feature(self) -> Message:
        class_id = self._rng.choice(self._described)
        number = self._rows[class_id] = self._rows.get(class_id, 0) + 1
        row = WORLD.draw(class_id, 1, 10 + number)[0]
        return encode(Feature(class_id=class_id, vector=row, id=f"{class_id}#{number}"))

    def end_task(self) -> None:
        self._task += 1
        cut = {role: self._bus.end_offsets(TOPICS[role]) for role in DATA_ROLES}
        self._input("control", encode(Boundary(reason=f"task {self._task}", cut=cut)))
        self.good += 1
        self._writer.flush()
        self._sent.clear()

    def _input(self, role: str, message: Message) -> None:
        self.inputs.append((role, self._writer.send(TOPICS[role], message)))

    def close(self) -> None:
        self._writer.close()


# ---- the run


def soak(
    bus: Bus, settings: Settings, directory: Path, kills: int, windows: int, rng: random.Random
) -> tuple[Fleet, Feeder]:
    feeder, fleet = Feeder(bus, rng), Fleet(settings, directory, rng)
    try:
        feeder.describe(4)
        next_kill = time.monotonic() + 8.0  # gives the first workers time to start
        ended = 0
        next_end = time.monotonic() + 4.0
        while fleet.kills < kills or ended < windows:
            now = time.monotonic()
            if fleet.kills < kills and now >= next_kill:
                fleet.kill()
                next_kill = now + rng.uniform(1.0, 7.0)
            fleet.tend()
            if ended < windows:
                feeder.send_features()
            elif rng.random() < 0.2:
                feeder.ask()
            if ended < windows and now >= next_end:
                if rng.random() < 0.3:
                    feeder.describe(1)
                feeder.end_task()
                ended += 1
                next_end = now + rng.uniform(1.0, 9.0 * kills / max(windows, 1) if kills else 1.5)
                print(f"\r{fleet.kills} kills, {ended} tasks ", end="", file=sys.stderr)
            time.sleep(0.1)
        print(file=sys.stderr)
        settle(bus, fleet, feeder)
    finally:
        fleet.end()
        feeder.close()
    return fleet, feeder


def settle(bus: Bus, fleet: Fleet, feeder: Feeder) -> None:
    """Waits until every boundary is in the ledger and every sample answered, but not longer than `SETTLE_SECONDS`."""
    deadline = time.monotonic() + SETTLE_SECONDS
    end = bus.end_offsets(TOPICS["control"])[0]
    while time.monotonic() < deadline:
        fleet.tend()
        last, _ = ledger.read_last(bus, TOPICS)
        if last is not None and last.ranges["control"][0].end >= end and not unanswered(bus, feeder):
            return
        time.sleep(1.0)


# ---- the audit


def unanswered(bus: Bus, feeder: Feeder) -> int:
    topic, answered = TOPICS["predictions"], set()
    ends = {TopicPartition(topic, p): end for p, end in bus.end_offsets(topic).items()}
    with bus.reader({TopicPartition(topic, p): first for p, first in bus.begin_offsets(topic).items()}) as reader:
        while any(reader.position(tp) < end for tp, end in ends.items()):
            for record in reader.poll(1.0):
                event = decode("predictions", record.key, record.value, record.headers)
                assert isinstance(event, Prediction)
                answered.add(event.request_id)
    return len(feeder.samples - answered)


def audit(bus: Bus, feeder: Feeder) -> tuple[int, int, int]:
    """How many windows there are, how many records were lost, and how many were processed twice."""
    topic = TOPICS["windows"]
    numbers = Counter(
        ledger.parse(item).number
        for item in ledger.read_range(bus, topic, bus.begin_offsets(topic)[0], bus.end_offsets(topic)[0])
    )
    records = ledger.read_all(bus, TOPICS)
    spans = [(role, p, span) for r in records[1:] for role, given in r.ranges.items() for p, span in given.items()]
    accepted = sum(span.accepted for _, _, span in spans)
    duplicate = sum(span.duplicate for _, _, span in spans)
    dead = sum(sum(span.dead.values()) for _, _, span in spans)
    ends = {(role, p): span.end for role, p, span in spans}
    outside = sum(receipt.offset >= ends.get((role, receipt.partition), 0) for role, receipt in feeder.inputs)
    missing = max(0, feeder.good - accepted) + max(0, feeder.bad - dead)
    again = max(0, accepted - feeder.good) + max(0, feeder.duplicates - duplicate) + max(0, dead - feeder.bad)
    lost = max(outside, missing) + unanswered(bus, feeder)
    return len(records) - 1, lost, again + sum(count - 1 for count in numbers.values())


@contextmanager
def bus_url(kind: str, directory: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{directory / 'bus.db'}?session_timeout_ms={SESSION_MS}"
        return
    with kafka_at(None, directory / "broker", {"group.min.session.timeout.ms": "1000"}) as url:
        yield f"{url}?session_timeout_ms={SESSION_MS}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--windows", type=int, default=40, help="task boundaries; descriptions close more windows")
    parser.add_argument("--bus", choices=("kafka", "sqlite"), default="kafka")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--check", action="store_true", help="no effect: it always fails when anything is lost or done twice"
    )
    arguments = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cgzsl-soak-") as name, bus_url(arguments.bus, Path(name)) as url:
        settings = Settings(bus=url, prefix=TOPICS.prefix, attributes=16, features=32, quiet_seconds=1.0, max_wait=5.0)
        with connect(url) as bus:
            bus.create(TOPICS.specs(3))
            rng = random.Random(arguments.seed)
            fleet, feeder = soak(bus, settings, Path(name), arguments.kills, arguments.windows, rng)
            windows, lost, doubled = audit(bus, feeder)
        stream = [f"--bus={url}", f"--prefix={TOPICS.prefix}"]
        codes = command(["check", *stream]), command(["replay", "--verify", *stream])
    short = windows < arguments.windows or fleet.kills < arguments.kills
    print(
        f"kills {fleet.kills}, windows {windows}, records {len(feeder.inputs):,} and {len(feeder.samples):,} samples, "
        f"check {codes[0]}, replay {codes[1]}, {time.monotonic() - started:.0f} s, lost {lost}, doubled {doubled}"
    )
    return 1 if short or lost or doubled or any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
