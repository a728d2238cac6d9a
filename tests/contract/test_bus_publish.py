"""A transaction is visible completely or not at all, and only the newest publisher of a name can write."""

from __future__ import annotations

import pytest
from bus_reading import NewTopic, read_all, read_to, texts, values, write

from stream_cgzsl.bus import Bus, Publisher, Receipt, TopicPartition
from stream_cgzsl.errors import Fenced, MessageTooLarge, TopicMissing
from stream_cgzsl.schemas.message import Message


def publish(publisher: Publisher, topic: str, *what: str) -> list[Receipt]:
    publisher.begin()
    receipts = [publisher.send(topic, message) for message in values(*what)]
    publisher.commit()
    return receipts


def test_nothing_is_visible_before_the_commit_and_everything_after(bus: Bus, new_topic: NewTopic, name: str) -> None:
    first, second = new_topic(partitions=2), new_topic()
    with bus.publisher(name) as publisher:
        publisher.begin()
        for partition in (0, 1):
            publisher.send(first, Message(None, b"p%d" % partition), partition)
        publisher.send(second, Message(None, b"s"))
        publisher.flush()
        assert (read_all(bus, first), read_all(bus, second)) == ([], [])
        assert (bus.end_offsets(first), bus.end_offsets(second)) == ({0: 0, 1: 0}, {0: 0})
        assert bus.offsets_at(second, 0) == {0: None}
        publisher.commit()
        assert (texts(read_all(bus, first)), texts(read_all(bus, second))) == (["p0", "p1"], ["s"])


def test_a_waiting_reader_gets_nothing_before_the_commit(bus: Bus, topic: str, name: str) -> None:
    with bus.reader({TopicPartition(topic, 0): 0}) as reader, bus.publisher(name) as publisher:
        publisher.begin()
        publisher.send(topic, Message(None, b"a"))
        publisher.flush()
        assert reader.poll(0.5) == []
        publisher.commit()
        assert texts(read_to(reader, TopicPartition(topic, 0), 1)) == ["a"]


def test_an_aborted_transaction_is_never_visible(bus: Bus, topic: str, name: str) -> None:
    with bus.publisher(name) as publisher:
        publish(publisher, topic, "a")
        publisher.begin()
        publisher.send(topic, Message(None, b"dropped"))
        publisher.flush()
        publisher.abort()
        publish(publisher, topic, "b")
    assert texts(read_all(bus, topic)) == ["a", "b"]


def test_messages_not_flushed_are_aborted_too(bus: Bus, topic: str, name: str) -> None:
    with bus.publisher(name) as publisher:
        publisher.begin()
        publisher.send(topic, Message(None, b"dropped"))
        publisher.abort()
        publish(publisher, topic, "a")
    assert texts(read_all(bus, topic)) == ["a"]


def test_closing_aborts_an_open_transaction(bus: Bus, topic: str, name: str) -> None:
    with bus.publisher(name) as publisher:
        publisher.begin()
        publisher.send(topic, Message(None, b"dropped"))
        publisher.flush()
    write(bus, topic, values("a"))
    assert texts(read_all(bus, topic)) == ["a"]


def test_offsets_are_known_after_the_flush_and_unchanged_by_the_commit(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("before"))
    with bus.publisher(name) as publisher:
        publisher.begin()
        receipts = [publisher.send(topic, message) for message in values("a", "b", "c")]
        publisher.flush()
        assert receipts == [Receipt(0, 1), Receipt(0, 2), Receipt(0, 3)]
        last = publisher.send(topic, Message(None, b"d"))
        publisher.commit()
    assert last == Receipt(0, 4)
    assert [(r.offset, r.value) for r in read_all(bus, topic, 1)] == [(1, b"a"), (2, b"b"), (3, b"c"), (4, b"d")]


def test_positions_pass_offsets_that_are_never_delivered(bus: Bus, topic: str, name: str) -> None:
    tp = TopicPartition(topic, 0)
    with bus.publisher(name) as publisher:
        for round_ in range(3):
            publish(publisher, topic, f"a{round_}", f"b{round_}")
            publisher.begin()
            publisher.send(topic, Message(None, b"dropped"))
            publisher.flush()
            publisher.abort()
    end = bus.end_offsets(topic)[0]
    with bus.reader({tp: 0}) as reader:
        records = read_to(reader, tp, end)
        assert reader.position(tp) == end
    assert texts(records) == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_consumed_offsets_are_committed_with_the_transaction(bus: Bus, new_topic: NewTopic, name: str) -> None:
    source, sink = new_topic(partitions=3), new_topic()
    with bus.publisher(name) as publisher:
        publisher.begin()
        publisher.send(sink, Message(None, b"a"))
        publisher.commit(f"{name}-group", {TopicPartition(source, 0): 7, TopicPartition(source, 2): 9})
        assert bus.committed(f"{name}-group", source) == {0: 7, 2: 9}
        publisher.begin()
        publisher.send(sink, Message(None, b"b"))
        publisher.commit(f"{name}-group", {TopicPartition(source, 0): 8})
        assert bus.committed(f"{name}-group", source) == {0: 8, 2: 9}


def test_consumed_offsets_of_a_group_with_members_can_be_committed(bus: Bus, new_topic: NewTopic, name: str) -> None:
    source, sink = new_topic(), new_topic()
    with bus.lock(name, source) as lock, bus.publisher(name) as publisher:
        assert lock.acquire(30.0)
        publisher.begin()
        publisher.send(sink, Message(None, b"a"))
        publisher.commit(name, {TopicPartition(source, 0): 7})
        assert bus.committed(name, source) == {0: 7}
        assert lock.held()


def test_a_newer_publisher_fences_the_older(bus: Bus, topic: str, name: str) -> None:
    older = bus.publisher(name)
    publish(older, topic, "a")
    newer = bus.publisher(name)
    with pytest.raises(Fenced, match="newer"):
        publish(older, topic, "fenced")
    with pytest.raises(Fenced):
        older.begin()
    older.abort()
    older.close()
    publish(newer, topic, "b")
    newer.close()
    assert texts(read_all(bus, topic)) == ["a", "b"]


def test_publishers_with_different_names_are_independent(bus: Bus, topic: str, name: str) -> None:
    with bus.publisher(f"{name}-1") as first, bus.publisher(f"{name}-2") as second:
        publish(first, topic, "a")
        publish(second, topic, "b")
        publish(first, topic, "c")
    assert texts(read_all(bus, topic)) == ["a", "b", "c"]


def test_a_large_transaction_is_complete(bus: Bus, topic: str, name: str) -> None:
    chunks = [bytes([i]) * 512_000 for i in range(40)]
    with bus.publisher(name) as publisher:
        publisher.begin()
        for chunk in chunks:
            publisher.send(topic, Message(b"k", chunk))
        publisher.commit()
    assert [record.value for record in read_all(bus, topic)] == chunks


def test_an_empty_transaction_changes_nothing(bus: Bus, topic: str, name: str) -> None:
    with bus.publisher(name) as publisher:
        publisher.begin()
        publisher.commit()
        assert bus.end_offsets(topic) == {0: 0}
        publish(publisher, topic, "a")
    assert texts(read_all(bus, topic)) == ["a"]


def test_a_failed_transaction_can_be_aborted_and_the_publisher_reused(bus: Bus, topic: str, name: str) -> None:
    with bus.publisher(name) as publisher:
        publisher.begin()
        publisher.send(topic, Message(None, b"dropped"))
        with pytest.raises(TopicMissing):
            publisher.send("not-there", Message(None, b"v"))
        publisher.abort()
        publisher.begin()
        with pytest.raises(MessageTooLarge):
            publisher.send(topic, Message(None, bytes(65 * 1024 * 1024)))
        publisher.abort()
        publish(publisher, topic, "a")
    assert texts(read_all(bus, topic)) == ["a"]


def test_sending_needs_an_open_transaction(bus: Bus, topic: str, name: str) -> None:
    with bus.publisher(name) as publisher:
        with pytest.raises(RuntimeError, match="begin"):
            publisher.send(topic, Message(None, b"v"))
        publish(publisher, topic, "a")
        with pytest.raises(RuntimeError, match="begin"):
            publisher.send(topic, Message(None, b"v"))
