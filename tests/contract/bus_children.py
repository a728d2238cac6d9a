"""What other processes do while a contract test watches. Each runs in a process of its own, on a bus of its own."""

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
    """Runs `work(connection, *arguments)` in a new process; the parent's end of the connection is yielded."""
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
    """The child's next message, which must come within a minute."""
    assert connection.poll(60.0), "the other process did not answer"
    return connection.recv()


def write_numbered(connection: Connection, url: str, topic: str, name: str, count: int) -> None:
    """Writes `name-0`, `name-1`, ... in flushes of ten, once told to start."""
    with connect(url) as bus, bus.writer() as writer:
        connection.send("ready")
        connection.recv()
        for number in range(count):
            writer.send(topic, Message(name.encode(), f"{name}-{number}".encode()))
            if number % 10 == 9:
                writer.flush()
        writer.flush()


def read_numbered(connection: Connection, url: str, topic: str, count: int) -> None:
    """Reads while others write; answers with the offsets and values of the first `count` records."""
    with connect(url) as bus, bus.reader({TopicPartition(topic, 0): 0}) as reader:
        connection.send("ready")
        records: list[tuple[int, bytes | None]] = []
        while len(records) < count:
            records += [(record.offset, record.value) for record in reader.poll(1.0, max_records=37)]
        connection.send(records)


def count_at_ends(connection: Connection, url: str, topic: str) -> None:
    """Looks for the end and reads up to it, again and again until told to stop, and once more after that.

    Answers with how much it had read at each end, and with all of it.
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
            reader.assign({tp: end})
        connection.send((counts, seen))
