"""The two clients behind `kafka://`, compared: what librdkafka gives to a learner that reads and to a scorer.

(a) Reading a window with librdkafka, digest included, relative to kafka-python, and to a bare loop of librdkafka that
copies every vector into one array and hashes it. (b) One scorer, 50 classes of 2048 numbers, with either client. All
take turns; a ratio is the median of the ratios within a round. Besides the rates, the processor time per record: that
is what a client saves where other processes share the machine.
"""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.kafka.settings import CLIENTS, KafkaSettings
from stream_cgzsl.bus.librdkafka import settings as librdkafka

NUMBERS = 2048
TARGET_WINDOW = 3.0
TARGET_OF_BARE = 0.6
TARGET_SCORER = 2.5


def through(url: str, client: str) -> str:
    """The same cluster through that client."""
    return f"{url}{'&' if '?' in url else '?'}client={client}"


class Timed:
    """Rates and processor times of something that is done once a round."""

    def __init__(self, work: Callable[[], object], records: int) -> None:
        self._work = work
        self._records = records
        self.rates: list[float] = []
        self.micros: list[float] = []

    def run(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        self._work()
        self.rates.append(self._records / (time.perf_counter() - wall))
        self.micros.append((time.process_time() - cpu) / self._records * 1e6)

    def over(self, other: Timed) -> float:
        return statistics.median(a / b for a, b in zip(self.rates[1:], other.rates[1:], strict=True))

    def cheaper_than(self, other: Timed) -> float:
        return statistics.median(b / a for a, b in zip(self.micros[1:], other.micros[1:], strict=True))

    def __str__(self) -> str:
        return f"{statistics.median(self.rates[1:]):,.0f}/s, {statistics.median(self.micros[1:]):.1f} us"


def copy_and_hash(url: str, topic: str, starts: dict[int, int], records: int) -> None:
    consumer = Consumer(librdkafka.consumer(KafkaSettings.parse(url), waits=False))
    consumer.assign([ClientPartition(topic, partition, offset) for partition, offset in starts.items()])
    rows = np.empty((records, NUMBERS), np.float32)
    digest = hashlib.sha256()
    got = 0
    while got < records:
        for message in consumer.consume(1000, 0.1):
            value = message.value()
            if message.error() is None and value is not None:
                rows[got] = np.frombuffer(value, np.float32)
                digest.update(value)
                got += 1
    consumer.close()


def compare_windows(
    url: str, topic: str, starts: dict[int, int], records: int, rounds: int, read: Callable[[Bus], object]
) -> tuple[Timed, Timed, Timed]:
    """With librdkafka, with kafka-python, and bare librdkafka. `read` reads the whole window, of so many records."""
    with connect(through(url, CLIENTS[0])) as one, connect(through(url, CLIENTS[1])) as other:
        timed = (
            Timed(partial(read, other), records),
            Timed(partial(read, one), records),
            Timed(partial(copy_and_hash, url, topic, starts, records), records),
        )
        for number in range(rounds + 1):
            for each in timed if number % 2 else reversed(timed):
                each.run()
    return timed


def compare_scorers(rounds: int, measure: Callable[[str, int], float]) -> tuple[dict[str, float], float]:
    """Answers per second by client, and the median of the ratios; `measure` is given a client and a round's number."""
    found: dict[str, list[float]] = {client: [] for client in CLIENTS}
    for number in range(rounds):
        for client in CLIENTS if number % 2 else reversed(CLIENTS):
            found[client].append(measure(client, number))
    first, second = CLIENTS
    ratio = statistics.median(b / a for a, b in zip(found[first], found[second], strict=True))
    return {client: statistics.median(rates) for client, rates in found.items()}, ratio
