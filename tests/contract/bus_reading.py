"""Writing to a bus and reading it to its end, for the contract tests and their other processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from patience import PATIENCE_SECONDS

from stream_cgzsl.bus import Bus, Reader, Receipt, Record, TopicPartition
from stream_cgzsl.schemas.message import Message

NewTopic = Callable[..., str]


def write(bus: Bus, topic: str, messages: Iterable[Message], partition: int | None = None) -> list[Receipt]:
    with bus.writer() as writer:
        receipts = [writer.send(topic, message, partition) for message in messages]
        writer.flush()
    return receipts


def values(*texts: str) -> list[Message]:
    return [Message(None, text.encode()) for text in texts]


def read_to(reader: Reader, tp: TopicPartition, end: int) -> list[Record]:
    """Everything up to `end`, within a minute."""
    records: list[Record] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while reader.position(tp) < end:
        assert time.monotonic() < deadline, f"stuck at {reader.position(tp)} before {end}"
        records += reader.poll(1.0)
    return records


def read_all(bus: Bus, topic: str, start: int = 0) -> list[Record]:
    """Every record a reader can see now, partition by partition."""
    records = []
    for partition, end in sorted(bus.end_offsets(topic).items()):
        tp = TopicPartition(topic, partition)
        with bus.reader({tp: start}) as reader:
            records += read_to(reader, tp, end)
    return records


def texts(records: Iterable[Record]) -> list[str]:
    return [(record.value or b"").decode() for record in records]
