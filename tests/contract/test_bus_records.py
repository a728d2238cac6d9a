"""Records are read back unchanged, in order, where they were written."""

from __future__ import annotations

import threading
import time
from collections import defaultdict

import pytest
from bus_reading import NewTopic, read_all, read_to, texts, values, write
from expiry import expire
from patience import until

from stream_cgzsl.bus import Bus, Receipt, Record, TopicPartition, connect
from stream_cgzsl.errors import Expired, MessageTooLarge, TopicMissing
from stream_cgzsl.schemas.message import Message


def test_records_are_read_back_unchanged_and_in_order(bus: Bus, topic: str) -> None:
    messages = [Message(b"k%d" % (i % 7), b"v%d" % i, (("n", b"%d" % i),), 1_000_000 + i) for i in range(300)]
    write(bus, topic, messages)
    assert read_all(bus, topic) == [
        Record(topic, 0, i, m[3], m.key, m.value, m.headers) for i, m in enumerate(messages)
    ]


def test_receipts_say_where_each_message_went(bus: Bus, topic: str) -> None:
    assert write(bus, topic, values("a", "b", "c")) == [Receipt(0, 0), Receipt(0, 1), Receipt(0, 2)]


def test_pushed_messages_are_written_without_a_flush_and_their_receipts_filled_in(bus: Bus, topic: str) -> None:
    with bus.writer() as writer:
        receipts = [writer.send(topic, message) for message in values("a", "b")]
        assert not any(receipt.known for receipt in receipts)

        def acknowledged() -> bool:
            writer.push()
            return receipts[-1].known

        until(acknowledged)
        assert receipts == [Receipt(0, 0), Receipt(0, 1)]
        assert texts(read_all(bus, topic)) == ["a", "b"]


def test_a_message_goes_to_the_given_partition(bus: Bus, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    for partition in (2, 0, 2):
        write(bus, topic, [Message(b"same key", b"%d" % partition)], partition)
    assert [(r.partition, r.offset, r.value) for r in read_all(bus, topic)] == [
        (0, 0, b"0"),
        (2, 0, b"2"),
        (2, 1, b"2"),
    ]


def test_messages_with_one_key_share_a_partition_and_keep_their_order(bus: Bus, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=4)
    write(bus, topic, [Message(b"key %d" % (i % 40), b"%d" % i) for i in range(240)])
    homes, read = defaultdict(set), defaultdict(list)
    for record in read_all(bus, topic):
        homes[record.key].add(record.partition)
        read[record.key].append(int(record.value or b""))
    assert {len(partitions) for partitions in homes.values()} == {1}
    assert dict(read) == {b"key %d" % k: list(range(k, 240, 40)) for k in range(40)}


def test_headers_keep_order_repetition_and_every_byte(bus: Bus, topic: str) -> None:
    headers = (("b", b"\x00\xff"), ("a", b""), ("b", b"2"), ("naïve ✓", "ü".encode()))
    write(bus, topic, [Message(b"k", b"v", headers)])
    assert [record.headers for record in read_all(bus, topic)] == [headers]


def test_messages_without_key_value_or_headers(bus: Bus, topic: str) -> None:
    write(
        bus,
        topic,
        [Message(b"k", None), Message(b"k", b""), Message(None, b"v"), Message(None, None), Message(b"", b"v")],
    )
    found = [(record.key, record.value or None, record.headers) for record in read_all(bus, topic)]
    assert found == [(b"k", None, ()), (b"k", None, ()), (None, b"v", ()), (None, None, ()), (b"", b"v", ())]


def test_a_value_of_five_megabytes(bus: Bus, topic: str) -> None:
    value = bytes(range(250)) * 20_000
    write(bus, topic, [Message(b"k", b"before"), Message(b"k", value), Message(b"k", b"after")])
    assert [record.value for record in read_all(bus, topic)] == [b"before", value, b"after"]


def test_a_value_over_the_limit_is_refused_and_the_writer_stays_usable(bus: Bus, topic: str) -> None:
    with bus.writer() as writer:
        with pytest.raises(MessageTooLarge):
            writer.send(topic, Message(b"k", bytes(65 * 1024 * 1024)))
            writer.flush()
        writer.send(topic, Message(b"k", b"small"))
        writer.flush()
    assert texts(read_all(bus, topic)) == ["small"]


def test_a_message_without_a_timestamp_gets_one(bus: Bus, topic: str) -> None:
    before = time.time_ns() // 1_000_000
    write(bus, topic, values("now"))
    after = time.time_ns() // 1_000_000
    (record,) = read_all(bus, topic)
    assert before <= record.timestamp_ms <= after


def test_a_poll_returns_at_most_max_records_and_the_next_continues(bus: Bus, topic: str) -> None:
    write(bus, topic, values(*map(str, range(10))))
    polls = []
    with bus.reader({TopicPartition(topic, 0): 0}) as reader:
        while sum(map(len, polls)) < 10:
            polls.append(texts(reader.poll(10.0, max_records=3)))
    assert max(map(len, polls)) == 3
    assert [text for poll in polls for text in poll] == [str(i) for i in range(10)]


def test_a_reader_starts_at_the_given_offset(bus: Bus, topic: str) -> None:
    write(bus, topic, values("a", "b", "c", "d"))
    assert texts(read_all(bus, topic, start=2)) == ["c", "d"]


@pytest.mark.parametrize("waits", [True, False])
def test_a_reader_of_several_partitions_reads_them_all(bus: Bus, new_topic: NewTopic, waits: bool) -> None:
    topic = new_topic(partitions=3)
    for partition in range(3):
        write(bus, topic, values(*(f"{partition}.{i}" for i in range(50))), partition)
    found: dict[int, list[str]] = {0: [], 1: [], 2: []}
    with bus.reader({TopicPartition(topic, partition): 10 for partition in range(3)}, waits) as reader:
        while sum(map(len, found.values())) < 120:
            for record in reader.poll(10.0, max_records=7):
                found[record.partition] += texts([record])
    assert found == {partition: [f"{partition}.{i}" for i in range(10, 50)] for partition in range(3)}


def test_assigning_changes_what_is_read(bus: Bus, new_topic: NewTopic) -> None:
    first, second = new_topic(), new_topic()
    write(bus, first, values("a", "b", "c"))
    write(bus, second, values("x", "y", "z"))
    with bus.reader({TopicPartition(first, 0): 0}) as reader:
        before = texts(read_to(reader, TopicPartition(first, 0), 3))
        reader.assign({TopicPartition(second, 0): 1})
        after = texts(read_to(reader, TopicPartition(second, 0), 3))
        reader.assign({TopicPartition(first, 0): 2})
        again = texts(read_to(reader, TopicPartition(first, 0), 3))
    assert (before, after, again) == (["a", "b", "c"], ["y", "z"], ["c"])


@pytest.mark.parametrize("waits", [True, False])
def test_an_empty_poll_waits_for_its_timeout(bus: Bus, topic: str, waits: bool) -> None:
    with bus.reader({TopicPartition(topic, 0): 0}, waits) as reader:
        reader.poll(0.1)
        started = time.monotonic()
        assert reader.poll(0.5) == []
        assert time.monotonic() - started > 0.4


def test_a_poll_returns_as_soon_as_there_is_a_record(bus: Bus, bus_url: str, topic: str) -> None:
    def write_later() -> None:
        time.sleep(0.3)
        with connect(bus_url) as other:
            write(other, topic, values("late"))

    thread = threading.Thread(target=write_later)
    with bus.reader({TopicPartition(topic, 0): 0}) as reader:
        thread.start()
        started = time.monotonic()
        assert texts(reader.poll(60.0)) == ["late"]
        assert time.monotonic() - started < 20.0
    thread.join()


def test_expired_records_are_named(bus: Bus, topic: str) -> None:
    write(bus, topic, values("a", "b", "c", "d"))
    expire(bus, topic, 0, before=2)
    assert bus.begin_offsets(topic) == {0: 2}
    assert texts(read_all(bus, topic, start=2)) == ["c", "d"]
    with bus.reader({TopicPartition(topic, 0): 1}) as reader, pytest.raises(Expired) as raised:
        for _ in range(20):
            reader.poll(1.0)
    assert f"{topic}/0: offset 1 was asked for and the first one kept is 2" in str(raised.value)


def test_an_offset_after_the_end_raises(bus: Bus, topic: str) -> None:
    write(bus, topic, values("a"))
    with bus.reader({TopicPartition(topic, 0): 5}) as reader, pytest.raises(Expired, match="offset 5 was asked for"):
        for _ in range(20):
            reader.poll(1.0)


def test_a_missing_topic_is_named_by_every_method(bus: Bus) -> None:
    def send() -> None:
        with bus.writer() as writer:
            writer.send("not-there", Message(b"k", b"v"))
            writer.flush()

    for call in (
        send,
        lambda: bus.begin_offsets("not-there"),
        lambda: bus.end_offsets("not-there"),
        lambda: bus.offsets_at("not-there", 0),
        lambda: bus.reader({TopicPartition("not-there", 0): 0}),
        lambda: bus.subscribe("not-there", "g"),
    ):
        with pytest.raises(TopicMissing, match=r"'not-there'.*stream-cgzsl topics create"):
            call()


def test_a_missing_partition_is_named(bus: Bus, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    with bus.writer() as writer, pytest.raises(TopicMissing, match=topic):
        writer.send(topic, Message(b"k", b"v"), partition=2)
    with pytest.raises(TopicMissing, match=topic):
        bus.reader({TopicPartition(topic, 2): 0})
