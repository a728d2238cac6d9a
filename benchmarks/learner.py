"""The overhead of a learner over the bus and the training themselves.

(a) Reading a window from Kafka until it can be trained on, compared with the bare client on the same range with the
same settings. (The digest of the inputs is computed during the training and not part of it.) (b) A commit compared with
a bare transaction of the same bytes. (c) With --million: one window of 1,000,000 features of 2048 numbers, learned by a
worker process: its peak memory, and its time compared with a bare read of the range plus the training on the same rows.
Both sides take turns; each ratio is the median of the ratios within a round, because machines are noisy.

With --client librdkafka also (a) with that client, relative to kafka-python and to librdkafka alone: see clients.py.

    python benchmarks/learner.py [--check] [--client librdkafka] [--million] [--records 12000] [--rounds 9]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from clients import TARGET_OF_BARE, TARGET_WINDOW, compare_windows
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as ClientPartition
from measuring import kafka_at, seconds
from million_stream import Million, learn_a_million

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.kafka.settings import CLIENTS, KafkaSettings
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import Attribute, Feature, Genesis, LedgerRecord, encode
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import commit_of
from stream_cgzsl.windows.commit import Commit, write_commit
from stream_cgzsl.windows.gather import Gathered, Gatherer
from stream_cgzsl.windows.offsets import Ends

NUMBERS, CLASSES, DISTINCT = 2048, 50, 256
STATE_BYTES = 20_000_000
TARGET_READ = 0.7
TARGET_MEMORY_GB = 3.0
TARGET_TIME = 2.0
TOPICS = Topics("bench")
GENESIS = Genesis(attributes=8, features=NUMBERS, signed=False)


# ---- (a) reading


def fill(bus: Bus, records: int) -> None:
    """Writes descriptions of all classes, and `records` features with distinct ids."""
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
    """Where the window starts and ends, which a learner knows before it reads."""
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
        raise RuntimeError(f"read {got} records, but {wanted} were written")


# ---- (b) committing


def commit_number(number: int) -> Commit:
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
    return commit_of(record, generation, {}, (), random.bytes(STATE_BYTES))


class Recorder:
    """Records the messages that a commit sends."""

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


def compare_reading(url: str, records: int, rounds: int, partitions: int) -> tuple[float, float, float]:
    """Records per second, bare and ours, and the ratio."""
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
                    gathered.inputs.result()  # so that it does not run into the next turn
                    del gathered
    return (
        records / statistics.median(bare[1:]),
        records / statistics.median(ours[1:]),
        statistics.median(b / o for b, o in zip(bare[1:], ours[1:], strict=True)),
    )


def compare_clients(url: str, records: int, rounds: int) -> tuple[str, list[str]]:
    """The same window again, through either client, with its digest: the figures, and which miss their target."""
    with connect(url) as bus:
        starts, ends = cut_of(bus)

    def read(bus: Bus) -> str:
        return read_ours(bus, starts, ends, records).inputs.result()

    ours, theirs, bare = compare_windows(url, TOPICS["features"], starts["features"], records, rounds, read)
    found = [
        (ours.over(theirs), TARGET_WINDOW, "of kafka-python"),
        (ours.over(bare), TARGET_OF_BARE, "of bare librdkafka"),
    ]
    said = ", ".join(f"{ratio:.2f} {what}" for ratio, _, what in found)
    missed = [f"librdkafka is {ratio:.2f} {what}, not {target}" for ratio, target, what in found if ratio < target]
    return (
        f"window and digest librdkafka {ours}, kafka-python {theirs}, bare librdkafka {bare}: {said}; processor time "
        f"{ours.cheaper_than(theirs):.2f} times less than kafka-python",
        missed,
    )


def compare_committing(url: str, rounds: int) -> tuple[float, float]:
    """Seconds, bare and ours."""
    bare: list[float] = []
    ours: list[float] = []
    producer = KafkaProducer(**KafkaSettings.parse(url).publisher("bench.bare"))
    producer.init_transactions()
    with connect(url) as bus, bus.publisher("bench.learner") as publisher:
        for number in range(rounds + 1):
            recorder = Recorder()
            write_commit(recorder, TOPICS, commit_number(number))  # type: ignore[arg-type]
            bare.append(seconds(partial(commit_bare, producer, recorder.messages)))
            ours.append(seconds(partial(write_commit, publisher, TOPICS, commit_number(number))))
    producer.close()
    return statistics.median(bare[1:]), statistics.median(ours[1:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when a figure misses its target")
    parser.add_argument("--kafka", metavar="URL", help="use this cluster instead of starting a broker")
    parser.add_argument("--client", choices=CLIENTS, default=CLIENTS[0], help="the client behind kafka:// of ours")
    parser.add_argument("--records", type=int, default=12_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--million", action="store_true", help="also one window of a million features (8 GB of disk)")
    arguments = parser.parse_args()
    missed: list[str] = []
    clients = ""
    million: Million | None = None
    with (
        tempfile.TemporaryDirectory(prefix="cgzsl-bench-") as directory,
        kafka_at(arguments.kafka, Path(directory) / "broker") as url,
    ):
        bare, ours, ratio = compare_reading(url, arguments.records, arguments.rounds, arguments.partitions)
        print(f"read      bare {bare:8,.0f} records/s   window {ours:8,.0f} records/s   {ratio:.2f} of bare")
        if arguments.client == "librdkafka":
            clients, missed = compare_clients(url, arguments.records, arguments.rounds)
            print(f"clients   {clients}")
        plain, whole = compare_committing(url, arguments.rounds)
        print(f"commit    bare {plain:8.2f} s           window {whole:8.2f} s           {whole / plain:.2f} of bare")
        if arguments.million:
            million = learn_a_million(url, Path(directory))
            print(f"million   {million}")
    if ratio < TARGET_READ:
        missed.append(f"reading is {ratio:.2f} of the bare client, the target is {TARGET_READ}")
    if million is not None and million.peak_gb > TARGET_MEMORY_GB:
        missed.append(f"a million features took {million.peak_gb:.2f} GB, the target is {TARGET_MEMORY_GB}")
    if million is not None and million.ratio > TARGET_TIME:
        missed.append(
            f"a million features took {million.ratio:.2f} of the bare read and training, the target is {TARGET_TIME}"
        )
    for line in missed:
        print(f"MISSED {line}")
    print(
        f"reading {ratio:.2f} of bare ({ours:,.0f} of {bare:,.0f} records/s); commit {whole:.2f} s, bare {plain:.2f} s"
        + (f"; {clients}" if clients else "")
        + (f"; million: {million}" if million is not None else "")
    )
    return 1 if arguments.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
