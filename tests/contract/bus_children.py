"""The other processes of the contract tests. Each has its own bus."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from bus_reading import read_to

from stream_cgzsl.bus import TopicPartition, connect
from stream_cgzsl.schemas.message import Message


@contextmanager
def child(work: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """Runs `work(connection, *arguments)` in a new process and yields the parent's end of the connection."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, *arguments))
    process.start()
    theirs.close()
    try:
        yield ours
        process.join(60.0)
        assert process.exitcode == 0
    finally:
        if process.is_alive():
            process.kill()
            process.join()


def answer(connection: Connection) -> Any:
    """The child's next message, within a minute."""
    assert connection.poll(60.0), "no answer from the other process"
    return connection.recv()


def write_numbered(connection: Connection, url: str, topic: str, name: str, count: int) -> None:
    """Waits for a message, then writes `name-0`, `name-1`, ... and flushes after every ten."""
    with connect(url) as bus, bus.writer() as writer:
        connection.send("ready")
        connection.recv()
        for number in range(count):
            writer.send(topic, Message(name.encode(), f"{name}-{number}".encode()))
            if number % 10 == 9:
                writer.flush()
        writer.flush()


def read_numbered(connection: Connection, url: str, topic: str, count: int) -> None:
    """Reads while others write, and sends the offsets and values of the first `count` records."""
    with connect(url) as bus, bus.reader({TopicPartition(topic, 0): 0}) as reader:
        connection.send("ready")
        records: list[tuple[int, bytes | None]] = []
        while len(records) < count:
            records += [(record.offset, record.value) for record in reader.poll(1.0, max_records=37)]
        connection.send(records)


def count_at_ends(connection: Connection, url: str, topic: str) -> None:
    """Repeatedly looks up the end and reads up to it, until it gets a message, and once more after that.

    Sends a message when it has seen three different ends; at last, the number of records read at each end and their
    values.
    """
    tp = TopicPartition(topic, 0)
    with connect(url) as bus, bus.reader({tp: 0}) as reader:
        connection.send("ready")
        seen: list[bytes | None] = []
        counts: list[int] = []
        last = False
        while not last:
            last = connection.poll()
            end = bus.end_offsets(topic)[0]
            seen += [record.value for record in read_to(reader, tp, end) if record.offset < end]
            counts.append(len(seen))
            if len(set(counts[:-1])) < 3 == len(set(counts)):
                connection.send("three ends seen")
            reader.assign({tp: end})
        connection.send((counts, seen))
