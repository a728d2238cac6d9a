"""Parts of the scorer's benchmark: a served stream, a bare loop to compare with, a client with a steady rate."""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.producer import ProduceRequest
from kafka.record.memory_records import MemoryRecordsBuilder
from kafka.structs import OffsetAndMetadata

from stream_cgzsl.bus import Bus, Record, TopicPartition
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import Genesis, LedgerRecord, Message, Sample, encode
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import commit_of
from stream_cgzsl.windows.commit import Commit, write_commit
from stream_cgzsl.workers import supervisor

NUMBERS, DISTINCT, BATCH = 2048, 256, 512
PORT = 29517
COMMIT_SECONDS = 1.0  # as in the scorer
ASK_SECONDS = 0.004


def generation(number: int, classes: int) -> Generation:
    """Of the form that the default learner publishes for non-negative features."""
    random = np.random.default_rng(number)
    return Generation(
        number=number,
        class_ids=tuple(f"class-{i:05}" for i in range(classes)),
        seen=np.arange(classes) % 3 > 0,
        vectors=random.normal(size=(classes, NUMBERS)).astype(np.float32) / np.float32(np.sqrt(NUMBERS)),
        biases=random.normal(size=classes).astype(np.float32) / 100,
        centre=np.full(NUMBERS, 0.9 / np.sqrt(NUMBERS), np.float32),
        transform="sqrt",
    )


def rows() -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).random((DISTINCT, NUMBERS), dtype=np.float32)


def commit(bus: Bus, topics: Topics, number: int, classes: int) -> None:
    genesis = Genesis(attributes=8, features=NUMBERS, signed=False)
    record = LedgerRecord(
        number=number,
        kind="train" if number else "genesis",
        reason="bench",
        genesis=None if number else genesis,
        configuration_digest="0" * 64,
        code="0",
    )
    with bus.publisher(f"{topics.prefix}.learner") as publisher:
        write_commit(publisher, topics, commit_of(record, generation(number, classes)) if number else Commit(record))


def serve_stream(bus: Bus, topics: Topics, classes: int, partitions: int, samples: int) -> None:
    """Creates a stream at generation 1, with that many samples waiting."""
    bus.create(topics.specs(partitions))
    commit(bus, topics, 0, classes)
    commit(bus, topics, 1, classes)
    messages = [encode(Sample(request_id=f"r{n}", vector=row)) for n, row in enumerate(rows())]
    with bus.writer() as writer:
        for number in range(samples):
            message = messages[number % DISTINCT]._replace(key=f"request-{number:07}".encode())
            writer.send(topics["samples"], message, number % partitions)


@contextmanager
def scorers(
    url: str, topics: Topics, count: int, directory: Path, one_core: bool = False, **more: Any
) -> Iterator[list[subprocess.Popen[bytes]]]:
    settings = Settings(bus=url, prefix=topics.prefix, batch=BATCH, **more)
    children = []
    for number in range(count):
        with (directory / f"{topics.prefix}-{number}.log").open("wb") as log:
            children.append(supervisor.start("score", settings, log))
        if one_core:
            on_one_core(children[-1])
    try:
        yield children
    finally:
        supervisor.end(children)


def read_whole(bus: Bus, topic: str) -> Iterator[Record]:
    ends = {TopicPartition(topic, p): end for p, end in bus.end_offsets(topic).items()}
    with bus.reader(dict.fromkeys(ends, 0)) as reader:
        while any(reader.position(tp) < end for tp, end in ends.items()):
            yield from reader.poll(1.0)


def on_one_core(process: subprocess.Popen[bytes], number: int = 0) -> subprocess.Popen[bytes]:
    """Pins a process that has just started to one core, where threads that share a lock run best."""
    cores = sorted(os.sched_getaffinity(0), reverse=True)
    os.sched_setaffinity(process.pid, {cores[number % len(cores)]})
    return process


def await_answers(
    bus: Bus, topic: str, wanted: int, children: list[subprocess.Popen[bytes]], skipped: float = 0.1
) -> float:
    """Answers per second by their timestamps, without the first ones (that fraction)."""
    while sum(bus.end_offsets(topic).values()) < wanted:
        if any(child.poll() is not None for child in children):
            raise RuntimeError("a scorer ended; see its log")
        time.sleep(0.1)
    times = sorted(record.timestamp_ms for record in read_whole(bus, topic))
    first = int(len(times) * skipped)
    return (len(times) - first) / max(times[-1] - times[first], 1) * 1000


def configure(url: str, topic: str, settings: dict[str, str]) -> None:
    admin = KafkaAdminClient(**KafkaSettings.parse(url).admin())
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, settings)])
    admin.close()


def metric(url: str, name: str) -> float:
    with urlopen(f"{url}/metrics", timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
    raise KeyError(name)


def await_ready(number: int) -> None:
    """Returns when the scorer on `PORT` serves generation `number`."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError):
            if metric(f"http://127.0.0.1:{PORT}", "cgzsl_generation_number") >= number:
                return
        time.sleep(0.01)
    raise RuntimeError(f"generation {number} was not served within a minute")


def first_answer(bus: Bus, topic: str) -> tuple[str, list[list[str]]]:
    """The value and headers of an answer, for the bare loop to send."""
    with bus.reader({TopicPartition(topic, 0): 0}) as reader:
        record = reader.poll(5.0, 1)[0]
    return (record.value or b"").decode(), [[name, value.decode()] for name, value in record.headers]


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


# ---- child processes


def child(verb: str, *arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(Path(__file__)), verb, json.dumps(arguments)]
    return subprocess.Popen(command, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})


def bare(
    url: str, source: str, target: str, group: str, value: str, headers: list[list[str]], total: int | None
) -> None:
    """Consumes samples and produces the same bytes for each, with the client alone and the scorer's settings.

    Without a `total` it runs until it is killed.
    """
    settings = KafkaSettings.parse(url)
    consumer, producer = KafkaConsumer(**settings.member(group)), KafkaProducer(**settings.producer())
    consumer.subscribe([source])
    content, copied = value.encode(), [(name, text.encode()) for name, text in headers]
    done, since = 0, time.perf_counter()
    while total is None or done < total:
        batches = consumer.poll(timeout_ms=200, max_records=BATCH)
        for records in batches.values():
            for record in records:
                producer.send(target, content, record.key, copied)
            done += len(records)
        if not batches or time.perf_counter() - since > COMMIT_SECONDS:
            producer.flush()
            consumer.commit({tp: OffsetAndMetadata(consumer.position(tp)) for tp in consumer.assignment()})
            since = time.perf_counter()
    producer.flush()
    producer.close()
    consumer.close()


def ask(url: str, topic: str, rate: float, seconds: float) -> None:
    """Sends samples at a steady rate, to two partitions in turn; each request id is the time it was sent.

    Clients usually run on another machine; here they share the processor with the scorer. So this writes the protocol
    to a socket itself, which costs a quarter of what a producer would.
    """
    messages = [encode(Sample(request_id="r", vector=row)) for row in rows()]
    host, _, port = KafkaSettings.parse(url).hosts[0].rpartition(":")
    gc.disable()
    with socket.create_connection((host, int(port))) as broker:
        started, sent, waiting = time.perf_counter(), 0, False
        while (passed := time.perf_counter() - started) < seconds:
            due = int(passed * rate) - sent
            if waiting:
                _read_answer(broker)
            if waiting := due > 0:
                chosen = [messages[number % DISTINCT] for number in range(sent, sent + due)]
                broker.sendall(_request(topic, [chosen[0::2], chosen[1::2]]))
                sent += due
            time.sleep(ASK_SECONDS)


def _request(topic: str, partitions: list[list[Message]]) -> bytes:
    """One produce request of the Kafka protocol; the keys of the messages are the current time in nanoseconds."""
    kind = ProduceRequest.TopicProduceData
    data = []
    for index, messages in enumerate(partitions):
        if messages:
            builder = MemoryRecordsBuilder(2, 0, 2**31 - 1)
            for message in messages:
                builder.append(None, b"%d" % time.time_ns(), message.value, list(message.headers))
            builder.close()
            data.append(kind.PartitionProduceData(index=index, records=builder.buffer()))
    request = ProduceRequest(
        transactional_id=None, acks=1, timeout_ms=10_000, topic_data=[kind(name=topic, partition_data=data)], version=9
    )
    request.with_header(correlation_id=1, client_id="asker")
    return bytes(request.encode(framed=True, header=True))


def _read_answer(broker: socket.socket) -> None:
    left = int.from_bytes(broker.recv(4, socket.MSG_WAITALL), "big")
    broker.recv(left, socket.MSG_WAITALL)


if __name__ == "__main__":
    (bare if sys.argv[1] == "bare" else ask)(*json.loads(sys.argv[2]))
