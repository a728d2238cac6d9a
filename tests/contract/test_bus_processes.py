"""Several processes on one bus at the same time."""

from __future__ import annotations

from bus_children import answer, child, count_at_ends, read_numbered, write_numbered

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


def test_another_process_sees_each_publish_whole_or_not_at_all(bus: Bus, bus_url: str, topic: str, name: str) -> None:
    size, rounds = 25, 30
    with child(count_at_ends, bus_url, topic) as reader, bus.publisher(name) as publisher:
        assert answer(reader) == "ready"
        for number in range(rounds):
            publisher.begin()
            for i in range(size):
                publisher.send(topic, Message(None, f"{number}.{i}".encode()))
                if i % 10 == 9:
                    publisher.flush()
            if number % 3 == 2:
                publisher.abort()
            else:
                publisher.commit()
        reader.send("stop")
        counts, seen = answer(reader)
    assert seen == [b"%d.%d" % (number, i) for number in range(rounds) if number % 3 < 2 for i in range(size)]
    assert [count for count in counts if count % size] == []
    assert len(set(counts)) > 2, "the reader was never at work while something was published"
