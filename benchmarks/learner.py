"""What a learner adds to what the bus and the training cost anyway.

(a) Reading a window from Kafka, until it can be trained on, beside the bare client that reads the same range with the same
settings (the digest of the inputs is found beside the training and waited for after it). (b) A commit
beside a bare transaction of the same bytes. (c) With --million: one window of 1,000,000 features of 2048 numbers, learned
by a worker process: its peak memory, and its time beside a bare read of the range plus the training of the same rows.
Rounds take turns; each ratio is the median of the ratios within a round, because machines are noisy.

    python benchmarks/learner.py [--check] [--million] [--records 12000] [--rounds 9]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as ClientPartition
from million_stream import Million, learn_a_million

from stream_cgzsl.bus import Bus, broker, connect
from stream_cgzsl.bus.kafka_settings import KafkaSettings
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.generation import Generation
from stream_cgzsl.schemas import Attribute, Feature, Genesis, LedgerRecord, encode
from stream_cgzsl.windows.commit import Commit, publish
from stream_cgzsl.windows.gather import Ends, Gathered, Gatherer

NUMBERS, CLASSES, DISTINCT = 2048, 50, 256
STATE_BYTES = 20_000_000
BAR_READ = 0.7
BAR_MEMORY_GB = 3.0
BAR_TIME = 2.0
TOPICS = Topics("bench")
GENESIS = Genesis(attributes=8, features=NUMBERS, signed=False)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


# ---- (a) reading


def fill(bus: Bus, records: int) -> None:
    """Descriptions of all classes, and `records` features with ids of their own."""
    random = np.random.default_rng(7)
    rows = random.random((DISTINCT, NUMBERS), dtype=np.float32)
    with bus.writer() as writer:
        for number in range(CLASSES):
            described = Attribute(class_id=f"class-{number}", vector=random.random(8, dtype=np.float32))
            writer.send(TOPICS["attributes"], encode(described))
        for number in range(records):
            event = Feature(class_id=f"class-{number % CLASSES}", vector=rows[number % DISTINCT], id=f"f{number}")
            writer.send(TOPICS["features"], encode(event))


def cut_of(bus: Bus) -> tuple[Ends, Ends]:
    """Where the window starts and ends: what a learner knows before it reads."""
    roles = ("attributes", "features")
    return {role: bus.begin_offsets(TOPICS[role]) for role in roles}, {
        role: bus.end_offsets(TOPICS[role]) for role in roles
    }


def read_ours(bus: Bus, starts: Ends, ends: Ends, records: int) -> Gathered:
    gathered = Gatherer(bus, TOPICS, GENESIS, 2 * 10**9).gather(1, starts, ends, frozenset(), frozenset())
    require(sum(examples.count for examples in gathered.window.features.values()), records)
    return gathered


def read_bare(settings: KafkaSettings, starts: Ends, records: int) -> None:
    consumer = KafkaConsumer(**settings.consumer(waits=False))
    begins = {ClientPartition(TOPICS["features"], p): offset for p, offset in starts["features"].items()}
    consumer.assign(begins)
    for partition, offset in begins.items():
        consumer.seek(partition, offset)
    got = 0
    while got < records:
        for batch in consumer.poll(timeout_ms=10_000, max_records=1000).values():
            got += len(batch)
    consumer.close()
    require(got, records)


def require(got: int, wanted: int) -> None:
    if got != wanted:
        raise RuntimeError(f"read {got} records where {wanted} were written")


# ---- (b) committing


def commit_of(number: int) -> Commit:
    random = np.random.default_rng(number)
    generation = Generation(
        number=number,
        class_ids=tuple(sorted(f"class-{i:03}" for i in range(200))),
        seen=np.ones(200, bool),
        vectors=random.random((200, NUMBERS), dtype=np.float32),
        biases=np.zeros(200, np.float32),
        centre=np.zeros(NUMBERS, np.float32),
    )
    record = LedgerRecord(number=number, kind="train", reason="bench", configuration_digest="0" * 64, code="0")
    return Commit(record, generation, {}, (), random.bytes(STATE_BYTES))


class Recorder:
    """Takes a commit apart into the messages it sends."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Any]] = []

    def send(self, topic: str, message: Any) -> Any:
        self.messages.append((topic, message))
        return _Nowhere()

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_: None


class _Nowhere:
    partition = offset = 0


def commit_bare(producer: Any, messages: list[tuple[str, Any]]) -> None:
    producer.begin_transaction()
    for topic, message in messages:
        producer.send(topic, message.value, message.key, list(message.headers))
    producer.flush()
    producer.commit_transaction()


# ---- the run


@contextmanager
def kafka_at(url: str | None, directory: Path, properties: Mapping[str, str] | None = None) -> Iterator[str]:
    """That cluster, or a broker of our own with these properties."""
    if url is not None:
        yield url
        return
    print("starting a Kafka broker ...", file=sys.stderr)
    started = broker.start(directory, properties=properties)
    try:
        yield started.url
    finally:
        started.stop()


def compare_reading(url: str, records: int, rounds: int, partitions: int) -> tuple[float, float, float]:
    """Records a second, bare and ours, and the ratio."""
    settings = KafkaSettings.parse(url)
    bare: list[float] = []
    ours: list[float] = []
    with connect(url) as bus:
        bus.create(TOPICS.specs(partitions))
        fill(bus, records)
        starts, ends = cut_of(bus)
        for number in range(rounds + 1):
            for whose in ("bare", "ours") if number % 2 else ("ours", "bare"):
                started = time.perf_counter()
                if whose == "bare":
                    read_bare(settings, starts, records)
                    bare.append(time.perf_counter() - started)
                else:
                    gathered = read_ours(bus, starts, ends, records)
                    ours.append(time.perf_counter() - started)
                    gathered.digest()  # nothing of it is to run during the next turn
                    del gathered
    return (
        records / statistics.median(bare[1:]),
        records / statistics.median(ours[1:]),
        statistics.median(b / o for b, o in zip(bare[1:], ours[1:], strict=True)),
    )


def compare_committing(url: str, rounds: int) -> tuple[float, float]:
    """Seconds, bare and ours."""
    bare: list[float] = []
    ours: list[float] = []
    producer = KafkaProducer(**KafkaSettings.parse(url).publisher("bench.bare"))
    producer.init_transactions()
    with connect(url) as bus, bus.publisher("bench.learner") as publisher:
        for number in range(rounds + 1):
            commit, recorder = commit_of(number), Recorder()
            publish(recorder, TOPICS, commit)  # type: ignore[arg-type]
            bare.append(seconds(partial(commit_bare, producer, recorder.messages)))
            ours.append(seconds(partial(publish, publisher, TOPICS, commit)))
    producer.close()
    return statistics.median(bare[1:]), statistics.median(ours[1:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when a figure is short of its bar")
    parser.add_argument("--kafka", metavar="URL", help="use this cluster instead of a broker of our own")
    parser.add_argument("--records", type=int, default=12_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--million", action="store_true", help="also one window of a million features (8 GB of disk)")
    arguments = parser.parse_args()
    short: list[str] = []
    million: Million | None = None
    with (
        tempfile.TemporaryDirectory(prefix="cgzsl-bench-") as directory,
        kafka_at(arguments.kafka, Path(directory) / "broker") as url,
    ):
        bare, ours, ratio = compare_reading(url, arguments.records, arguments.rounds, arguments.partitions)
        print(f"read      bare {bare:8,.0f} records/s   window {ours:8,.0f} records/s   {ratio:.2f} of bare")
        plain, whole = compare_committing(url, arguments.rounds)
        print(f"commit    bare {plain:8.2f} s           window {whole:8.2f} s           {whole / plain:.2f} of bare")
        if arguments.million:
            million = learn_a_million(url, Path(directory))
            print(f"million   {million}")
    if ratio < BAR_READ:
        short.append(f"reading is {ratio:.2f} of the bare client, the bar is {BAR_READ}")
    if million is not None and million.peak_gb > BAR_MEMORY_GB:
        short.append(f"a million features took {million.peak_gb:.2f} GB, the bar is {BAR_MEMORY_GB}")
    if million is not None and million.ratio > BAR_TIME:
        short.append(
            f"a million features took {million.ratio:.2f} of the bare read and training, the bar is {BAR_TIME}"
        )
    for line in short:
        print(f"SHORT {line}")
    print(
        f"reading {ratio:.2f} of bare ({ours:,.0f} of {bare:,.0f} records/s); commit {whole:.2f} s, bare {plain:.2f} s"
        + (f"; million: {million}" if million is not None else "")
    )
    return 1 if arguments.check and short else 0


if __name__ == "__main__":
    sys.exit(main())
