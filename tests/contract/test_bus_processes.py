"""Several processes on one bus at the same time."""

from __future__ import annotations

import time

from bus_children import answer, child, count_at_ends, read_numbered, write_numbered
from patience import PATIENCE_SECONDS

from stream_cgzsl.bus import Bus
from stream_cgzsl.schemas.message import Message


def test_two_processes_write_while_two_read(bus_url: str, topic: str) -> None:
    with (
        child(read_numbered, bus_url, topic, 400) as first_reader,
        child(read_numbered, bus_url, topic, 400) as second_reader,
        child(write_numbered, bus_url, topic, "x", 200) as first_writer,
        child(write_numbered, bus_url, topic, "y", 200) as second_writer,
    ):
        for connection in (first_reader, second_reader, first_writer, second_writer):
            assert answer(connection) == "ready"
        for connection in (first_writer, second_writer):
            connection.send("go")
        first, second = answer(first_reader), answer(second_reader)
    assert first == second
    assert [offset for offset, _ in first] == list(range(400))
    for name in ("x", "y"):
        mine = [value.decode() for _, value in first if value.startswith(name.encode())]
        assert mine == [f"{name}-{number}" for number in range(200)]


def test_another_process_sees_each_transaction_completely_or_not_at_all(
    bus: Bus, bus_url: str, topic: str, name: str
) -> None:
    size, rounds, deadline = 25, 0, time.monotonic() + PATIENCE_SECONDS
    with child(count_at_ends, bus_url, topic) as reader, bus.publisher(name) as publisher:
        assert answer(reader) == "ready"
        while rounds < 30 or not reader.poll():
            assert time.monotonic() < deadline, "the reader never ran during the transactions"
            publisher.begin()
            for i in range(size):
                publisher.send(topic, Message(None, f"{rounds}.{i}".encode()))
                if i % 10 == 9:
                    publisher.flush()
            if rounds % 3 == 2:
                publisher.abort()
            else:
                publisher.commit()
            rounds += 1
        assert answer(reader) == "three ends seen"
        reader.send("stop")
        counts, seen = answer(reader)
    assert seen == [b"%d.%d" % (number, i) for number in range(rounds) if number % 3 < 2 for i in range(size)]
    assert [count for count in counts if count % size] == []
