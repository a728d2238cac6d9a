"""How fast features of 2048 numbers go over each bus, beside the bare Kafka client on the same work.

Produce: encode, send, flush. Consume: poll, decode. The bare client sends the very same bytes with the very same
settings and none of our code. Rounds of all three take turns; a figure is the median of its rounds, and each ratio is the
median of the ratios within a round, because machines are noisy.

    python benchmarks/bus.py [--check] [--kafka kafka://host:port] [--records 8000] [--rounds 7]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as ClientPartition

from stream_cgzsl.bus import Bus, TopicPartition, TopicSpec, broker, connect
from stream_cgzsl.bus.kafka_settings import KafkaSettings
from stream_cgzsl.schemas.codec import decode, encode
from stream_cgzsl.schemas.feature import Feature

NUMBERS = 2048
DISTINCT = 256
WARM_UP = 1000  # records read before the clock starts, so that connecting is not measured
BAR_OF_BARE = 0.8
BAR_OF_KAFKA = 1.0

Rates = dict[str, list[float]]


def features() -> list[Feature]:
    random = np.random.default_rng(7)
    now = datetime.now(UTC)
    return [
        Feature(
            class_id=f"class-{i % 50}", id=uuid.uuid4().hex, time=now, vector=random.random(NUMBERS, dtype=np.float32)
        )
        for i in range(DISTINCT)
    ]


def seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


# ---- ours


def produce(bus: Bus, topic: str, events: list[Feature], records: int) -> float:
    with bus.writer() as writer:
        writer.send(topic, encode(events[0]))
        writer.flush()

        def work() -> None:
            for i in range(records):
                writer.send(topic, encode(events[i % DISTINCT]))
            writer.flush()

        return records / seconds(work)


def consume(bus: Bus, topic: str, start: int, records: int) -> float:
    with bus.reader({TopicPartition(topic, 0): start}) as reader:
        warm = read_ours(reader.poll, WARM_UP)
        left = records - warm
        return left / seconds(lambda: require(read_ours(reader.poll, left), left))


def read_ours(poll: Callable[[float], list[object]], records: int) -> int:
    got = 0
    while got < records:
        for record in poll(10.0):
            decode("features", record.key, record.value, record.headers)
            got += 1
    return got


# ---- bare


def produce_bare(settings: KafkaSettings, topic: str, events: list[Feature], records: int) -> float:
    messages = [encode(event) for event in events]
    ready = [(m.value, m.key, list(m.headers), m.timestamp_ms) for m in messages]
    producer = KafkaProducer(**settings.producer())
    producer.send(topic, *ready[0][:3], timestamp_ms=ready[0][3])
    producer.flush()

    def work() -> None:
        for i in range(records):
            value, key, headers, timestamp_ms = ready[i % DISTINCT]
            producer.send(topic, value, key, headers, None, timestamp_ms)
        producer.flush()

    rate = records / seconds(work)
    producer.close()
    return rate


def consume_bare(settings: KafkaSettings, topic: str, start: int, records: int) -> float:
    consumer = KafkaConsumer(**settings.consumer())
    partition = ClientPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, start)
    left = records - read_bare(consumer, WARM_UP)
    rate = left / seconds(lambda: require(read_bare(consumer, left), left))
    consumer.close()
    return rate


def read_bare(consumer: KafkaConsumer, records: int) -> int:
    got = 0
    while got < records:
        for batch in consumer.poll(timeout_ms=10_000, max_records=1000).values():
            for _ in batch:
                got += 1
    return got


def require(got: int, wanted: int) -> None:
    if got != wanted:
        raise RuntimeError(f"read {got} records where {wanted} were written")


# ---- the run


@contextmanager
def kafka_at(url: str | None, directory: Path) -> Iterator[str]:
    if url is not None:
        yield url
        return
    print("starting a Kafka broker ...", file=sys.stderr)
    started = broker.start(directory)
    try:
        yield started.url
    finally:
        started.stop()


def run(url: str, directory: Path, records: int, rounds: int) -> tuple[Rates, Rates]:
    produced: Rates = {"bare": [], "kafka": [], "sqlite": []}
    consumed: Rates = {"bare": [], "kafka": [], "sqlite": []}
    events = features()
    settings = KafkaSettings.parse(url)
    with connect(url) as kafka, connect(f"sqlite:///{directory / 'bus.db'}") as sqlite:
        for number in range(rounds + 1):
            topics = {name: f"bench-{uuid.uuid4().hex[:8]}.{name}" for name in produced}
            kafka.create([TopicSpec(topics["bare"]), TopicSpec(topics["kafka"])])
            sqlite.create([TopicSpec(topics["sqlite"])])
            turns: list[tuple[Rates, str, Callable[[], float]]] = [
                (produced, "bare", lambda t=topics: produce_bare(settings, t["bare"], events, records)),
                (produced, "kafka", lambda t=topics: produce(kafka, t["kafka"], events, records)),
                (produced, "sqlite", lambda t=topics: produce(sqlite, t["sqlite"], events, records)),
                (consumed, "bare", lambda t=topics: consume_bare(settings, t["bare"], 1, records)),
                (consumed, "kafka", lambda t=topics: consume(kafka, t["kafka"], 1, records)),
                (consumed, "sqlite", lambda t=topics: consume(sqlite, t["sqlite"], 1, records)),
            ]
            half = len(turns) // 2
            order = turns if number % 2 else turns[:half][::-1] + turns[half:][::-1]  # nobody always goes first
            for rates, name, turn in order:
                rate = turn()
                if number:  # the first round warms the broker up
                    rates[name].append(rate)
    return produced, consumed


def ratio(rates: Rates, ours: str, theirs: str) -> float:
    return statistics.median(a / b for a, b in zip(rates[ours], rates[theirs], strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when a figure is short of its bar")
    parser.add_argument("--kafka", metavar="URL", help="use this cluster instead of a broker of our own")
    parser.add_argument("--records", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cgzsl-bench-") as directory:
        path = Path(directory)
        with kafka_at(arguments.kafka, path / "broker") as url:
            produced, consumed = run(url, path, arguments.records, arguments.rounds)
    short = []
    for verb, rates in (("produced", produced), ("consumed", consumed)):
        for name, label in (("bare", "bare client"), ("kafka", "kafka://"), ("sqlite", "sqlite://")):
            print(f"{verb:9} {label:12} {statistics.median(rates[name]):8,.0f} events/s")
        for ours, theirs, bar in (("kafka", "bare", BAR_OF_BARE), ("sqlite", "kafka", BAR_OF_KAFKA)):
            if ratio(rates, ours, theirs) < bar:
                short.append(f"{verb}: {ours} is {ratio(rates, ours, theirs):.2f} of {theirs}, the bar is {bar}")
    for line in short:
        print(f"SHORT {line}")
    print(
        f"events/s of {NUMBERS} numbers: "
        + "; ".join(
            f"{verb} bare {statistics.median(r['bare']):,.0f}, kafka {statistics.median(r['kafka']):,.0f} "
            f"({ratio(r, 'kafka', 'bare'):.2f} of bare), sqlite {statistics.median(r['sqlite']):,.0f} "
            f"({ratio(r, 'sqlite', 'kafka'):.2f} of kafka)"
            for verb, r in (("produced", produced), ("consumed", consumed))
        )
    )
    return 1 if arguments.check and short else 0


if __name__ == "__main__":
    sys.exit(main())
