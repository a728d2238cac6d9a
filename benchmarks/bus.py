"""Throughput of features of 2048 numbers on each bus, compared with the bare Kafka client on the same work.

Produce: encode, send, flush. Consume: poll, decode. The bare client, kafka-python, sends and reads the same bytes with
the same settings and none of our code. All three take turns in many short rounds, because machines are noisy: a rate is
the median over rounds, a ratio the median of the ratios within a round.

    python benchmarks/bus.py [--check] [--kafka kafka://host:port] [--client librdkafka] [--rounds 25]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from clients import through
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as ClientPartition
from measuring import kafka_at

from stream_cgzsl.bus import Bus, TopicPartition, TopicSpec, connect
from stream_cgzsl.bus.kafka.settings import CLIENTS, KafkaSettings
from stream_cgzsl.schemas.codec import decode, encode
from stream_cgzsl.schemas.feature import Feature

NUMBERS = 2048
PRODUCED = 1000  # records per round
CONSUMED = 3000
WARM_UP = 1000  # read before the clock starts, so that the first response of the server is not measured
TARGET_OF_BARE = 0.8
TARGET_OF_KAFKA = 1.0

Rates = dict[str, list[float]]


def features() -> list[Feature]:
    random = np.random.default_rng(7)
    now = datetime.now(UTC)
    return [
        Feature(
            class_id=f"class-{i % 50}", id=uuid.uuid4().hex, time=now, vector=random.random(NUMBERS, dtype=np.float32)
        )
        for i in range(256)
    ]


class Contender(ABC):
    """Writes to `topic` and reads from its beginning."""

    @abstractmethod
    def produce(self, count: int) -> None:
        """Writes `count` features; returns when they are acknowledged."""

    @abstractmethod
    def rewind(self) -> None:
        """Makes the next `consume` start at the first record."""

    @abstractmethod
    def consume(self, count: int) -> int:
        """Reads at least `count` features; returns how many."""

    def time_produce(self) -> float:
        started = time.perf_counter()
        self.produce(PRODUCED)
        return PRODUCED / (time.perf_counter() - started)

    def time_consume(self) -> float:
        self.rewind()
        self.consume(WARM_UP)
        started = time.perf_counter()
        count = self.consume(CONSUMED)
        return count / (time.perf_counter() - started)


class Ours(Contender):
    def __init__(self, bus: Bus, topic: str, events: list[Feature]) -> None:
        self._topic = topic
        self._events = events
        self._writer = bus.writer()
        self._reader = bus.reader({})

    def produce(self, count: int) -> None:
        for i in range(count):
            self._writer.send(self._topic, encode(self._events[i % len(self._events)]))
        self._writer.flush()

    def rewind(self) -> None:
        self._reader.assign({TopicPartition(self._topic, 0): 0})

    def consume(self, count: int) -> int:
        got = 0
        while got < count:
            for record in self._reader.poll(10.0):
                decode("features", record.key, record.value, record.headers)
                got += 1
        return got


class Bare(Contender):
    def __init__(self, settings: KafkaSettings, topic: str, events: list[Feature]) -> None:
        self._topic = topic
        messages = [encode(event) for event in events]
        self._ready = [(m.value, m.key, list(m.headers), m.timestamp_ms) for m in messages]
        self._producer = KafkaProducer(**settings.producer())
        self._consumer = KafkaConsumer(**settings.consumer())
        self._consumer.assign([ClientPartition(topic, 0)])

    def produce(self, count: int) -> None:
        for i in range(count):
            value, key, headers, timestamp_ms = self._ready[i % len(self._ready)]
            self._producer.send(self._topic, value, key, headers, None, timestamp_ms)
        self._producer.flush()

    def rewind(self) -> None:
        self._consumer.seek(ClientPartition(self._topic, 0), 0)

    def consume(self, count: int) -> int:
        got = 0
        while got < count:
            for batch in self._consumer.poll(timeout_ms=10_000, max_records=1000).values():
                for _ in batch:
                    got += 1
        return got


def run(url: str, directory: Path, rounds: int) -> tuple[Rates, Rates]:
    events = features()
    with connect(url) as kafka, connect(f"sqlite:///{directory / 'bus.db'}") as sqlite:
        topics = [f"bench-{uuid.uuid4().hex[:8]}" for _ in range(2)]
        for bus in (kafka, sqlite):
            bus.create([TopicSpec(topic) for topic in topics])
        contenders: dict[str, Contender] = {
            "bare": Bare(KafkaSettings.parse(url), topics[0], events),
            "kafka": Ours(kafka, topics[1], events),
            "sqlite": Ours(sqlite, topics[1], events),
        }
        for contender in contenders.values():
            contender.produce(2 * WARM_UP + CONSUMED)
            contender.time_consume()
        produced: Rates = {name: [] for name in contenders}
        consumed: Rates = {name: [] for name in contenders}
        for number in range(rounds):
            order = list(contenders)
            for name in order if number % 2 else reversed(order):  # the order alternates
                produced[name].append(contenders[name].time_produce())
            for name in order if number % 2 else reversed(order):
                consumed[name].append(contenders[name].time_consume())
    return produced, consumed


def ratio(rates: Rates, ours: str, theirs: str) -> float:
    return statistics.median(a / b for a, b in zip(rates[ours], rates[theirs], strict=True))


def line(verb: str, rates: Rates) -> str:
    rate = {name: f"{statistics.median(values):,.0f}" for name, values in rates.items()}
    return (
        f"{verb} bare {rate['bare']}, kafka {rate['kafka']} ({ratio(rates, 'kafka', 'bare'):.2f} of bare), "
        f"sqlite {rate['sqlite']} ({ratio(rates, 'sqlite', 'kafka'):.2f} of kafka)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when a figure misses its target")
    parser.add_argument("--kafka", metavar="URL", help="use this cluster instead of starting a broker")
    parser.add_argument("--client", choices=CLIENTS, default=CLIENTS[0], help="the client behind kafka:// of ours")
    parser.add_argument("--rounds", type=int, default=25)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="cgzsl-bench-") as directory,
        kafka_at(arguments.kafka, Path(directory) / "broker") as url,
    ):
        produced, consumed = run(through(url, arguments.client), Path(directory), arguments.rounds)
    missed = False
    for verb, rates in (("produced", produced), ("consumed", consumed)):
        for ours, theirs, target in (("kafka", "bare", TARGET_OF_BARE), ("sqlite", "kafka", TARGET_OF_KAFKA)):
            if ratio(rates, ours, theirs) < target:
                print(f"MISSED: {verb}, {ours} is {ratio(rates, ours, theirs):.2f} of {theirs}; the target is {target}")
                missed = True
    print(f"events/s of {NUMBERS} numbers: {line('produced', produced)}; {line('consumed', consumed)}")
    return 1 if arguments.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
