"""One window of a million features of 2048 numbers: the cost of a learner process, and of the bare parts."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition
from measuring import seconds

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.history.stream_learner import Configuration, StreamLearner
from stream_cgzsl.runtime.environment import prepare_torch
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import Attribute, Boundary, Feature, encode
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.window import Description, Examples, Window
from stream_cgzsl.workers import supervisor

NUMBERS, CLASSES = 2048, 200
TOPICS = Topics("million")


@dataclass(frozen=True)
class Million:
    records: int
    peak_gb: float
    seconds: float
    bare_read: float
    training: float

    @property
    def ratio(self) -> float:
        """Relative to the time of a bare read of the range plus the training on the same rows."""
        return self.seconds / (self.bare_read + self.training)

    def __str__(self) -> str:
        return (
            f"{self.records:,} features, peak {self.peak_gb:.2f} GB, {self.seconds:.0f} s = {self.ratio:.2f} of "
            f"{self.bare_read:.0f} s bare read + {self.training:.0f} s training"
        )


def learn_a_million(url: str, directory: Path, records: int = 1_000_000) -> Million:
    """Writes the window, lets a learner process learn it, and measures that and the bare parts."""
    settings = Settings(bus=url, prefix=TOPICS.prefix, attributes=16, features=NUMBERS, quiet_seconds=3600)
    with connect(url) as bus:
        bus.create(TOPICS.specs(2))
        _fill(bus, records)
        bare = seconds(lambda: _read_bare(url, bus, records))
        peak, taken = _learn(bus, settings, directory / "learner.log")
    return Million(records, peak, taken, bare, _train_bare(settings, records))


def _fill(bus: Bus, records: int) -> None:
    random = np.random.default_rng(7)
    with bus.writer() as writer:
        for number in range(CLASSES):
            described = Attribute(class_id=f"class-{number:03}", vector=random.random(16, dtype=np.float32))
            writer.send(TOPICS["attributes"], encode(described))
        for number in range(records):
            row = random.random(NUMBERS, dtype=np.float32)
            event = Feature(class_id=f"class-{number % CLASSES:03}", vector=row, id=f"f{number}")
            writer.send(TOPICS["features"], encode(event))
            if number % 50_000 == 0:
                print(f"\r{number:,} features written ", end="", file=sys.stderr)
    print(file=sys.stderr)


def _read_bare(url: str, bus: Bus, records: int) -> None:
    """Reads with the client alone, with our settings."""
    consumer = KafkaConsumer(**KafkaSettings.parse(url).consumer())
    partitions = [ClientPartition(TOPICS["features"], p) for p in bus.begin_offsets(TOPICS["features"])]
    consumer.assign(partitions)
    for partition in partitions:
        consumer.seek(partition, 0)
    left = records
    while left > 0:
        left -= sum(len(batch) for batch in consumer.poll(timeout_ms=10_000, max_records=1000).values())
    consumer.close()


def _learn(bus: Bus, settings: Settings, log: Path) -> tuple[float, float]:
    """Peak memory of a learner process in GB, and the seconds from the boundary to the commit."""
    with log.open("wb") as output:
        process = supervisor.start("learn", settings, output)
    try:
        _wait_for(bus, 0, process)
        with bus.writer() as writer:
            writer.send(TOPICS["control"], encode(Boundary(reason="a million")))
        started = time.perf_counter()
        _wait_for(bus, 1, process)
        taken = time.perf_counter() - started
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e9
    finally:
        supervisor.end([process])
    print(log.read_text().splitlines()[-2], file=sys.stderr)
    return peak, taken


def _wait_for(bus: Bus, number: int, process: subprocess.Popen[bytes]) -> None:
    while True:
        last, _ = ledger.read_last(bus, TOPICS)
        if last is not None and last.number >= number:
            return
        if process.poll() is not None:
            raise RuntimeError(f"the learner ended with exit code {process.returncode}")
        time.sleep(0.5)


def _train_bare(settings: Settings, records: int) -> float:
    """Seconds of the same learner on as many rows as the window keeps, already in memory."""
    prepare_torch(settings.threads)
    memory = int(settings.memory_gb * 1e9)
    kept = min(records, memory // (4 * NUMBERS)) // CLASSES
    random = np.random.default_rng(8)
    names = [f"class-{number:03}" for number in range(CLASSES)]
    described = tuple(Description(name, random.random(16, dtype=np.float32)) for name in names)
    rows = random.random((kept * CLASSES, NUMBERS), dtype=np.float32)
    features = {name: Examples(records // CLASSES, rows[n * kept : (n + 1) * kept]) for n, name in enumerate(names)}
    gathered = Gathered(Window(1, described, (), features), {}, [], Future(), frozenset())
    learner = StreamLearner(settings.genesis(), Configuration(settings.learner, settings.options, memory), "cpu")
    return seconds(lambda: learner.learn("train", gathered))
