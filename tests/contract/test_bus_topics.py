"""Creating and listing topics; where they start, where they end, and their offsets at a time."""

from __future__ import annotations

import uuid

import pytest
from bus_reading import NewTopic, write
from expiry import delete_topic

from stream_cgzsl.bus import Bus, TopicSpec, connect
from stream_cgzsl.errors import TopicMissing
from stream_cgzsl.schemas.message import Message


def timed(*times_ms: int) -> list[Message]:
    return [Message(b"k", b"%d" % ms, (), ms) for ms in times_ms]


def test_topics_are_reported_as_they_were_created(bus: Bus) -> None:
    prefix = uuid.uuid4().hex[:12]
    specs = [
        TopicSpec(f"{prefix}.a", 3, "keep"),
        TopicSpec(f"{prefix}.b", 1, "compact"),
        TopicSpec(f"{prefix}.c", 2, "expire"),
    ]
    bus.create(specs)
    found = [spec for name, spec in bus.topics().items() if name.startswith(prefix)]
    assert sorted((s.name, s.partitions, s.cleanup) for s in found) == [
        (s.name, s.partitions, s.cleanup) for s in specs
    ]


def test_creating_an_existing_topic_changes_nothing(bus: Bus, new_topic: NewTopic) -> None:
    topic, other = new_topic(partitions=2), f"contract-{uuid.uuid4().hex[:12]}"
    write(bus, topic, timed(1), partition=1)
    bus.create([TopicSpec(topic, 5, "compact"), TopicSpec(other)])
    found = bus.topics()
    assert [(found[name].partitions, found[name].cleanup) for name in (topic, other)] == [(2, "keep"), (1, "keep")]
    assert bus.end_offsets(topic) == {0: 0, 1: 1}


def test_creating_nothing_is_no_error(bus: Bus) -> None:
    bus.create([])


def test_a_new_topic_starts_and_ends_at_zero(bus: Bus, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    assert (bus.begin_offsets(topic), bus.end_offsets(topic)) == ({0: 0, 1: 0}, {0: 0, 1: 0})


def test_end_offsets_advance_with_each_record(bus: Bus, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    write(bus, topic, timed(1, 2, 3), partition=2)
    write(bus, topic, timed(4), partition=0)
    assert (bus.begin_offsets(topic), bus.end_offsets(topic)) == ({0: 0, 1: 0, 2: 0}, {0: 1, 1: 0, 2: 3})


@pytest.mark.parametrize(("asked_ms", "offset"), [(0, 0), (1000, 0), (1001, 1), (2500, 2), (3000, 2), (3001, None)])
def test_the_first_record_at_or_after_a_time(bus: Bus, topic: str, asked_ms: int, offset: int | None) -> None:
    write(bus, topic, timed(1000, 2000, 3000))
    assert bus.offsets_at(topic, asked_ms) == {0: offset}


@pytest.mark.parametrize(
    ("asked_ms", "offset"), [(1000, 0), (1001, 1), (2000, 1), (3000, 1), (5000, 1), (5001, 4), (6001, None)]
)
def test_timestamps_out_of_order(bus: Bus, topic: str, asked_ms: int, offset: int | None) -> None:
    write(bus, topic, timed(1000, 5000, 2000, 3000, 6000, 500))
    assert bus.offsets_at(topic, asked_ms) == {0: offset}


def test_offsets_at_a_time_are_per_partition(bus: Bus, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    write(bus, topic, timed(1000, 2000), partition=0)
    write(bus, topic, timed(100), partition=1)
    assert bus.offsets_at(topic, 1500) == {0: 1, 1: None, 2: None}


def test_timestamps_across_many_batches(bus: Bus, topic: str) -> None:
    for first in range(0, 500, 100):
        write(bus, topic, timed(*range(first, first + 100)))
    assert [bus.offsets_at(topic, ms)[0] for ms in (0, 99, 100, 101, 250, 499, 500)] == [
        0,
        99,
        100,
        101,
        250,
        499,
        None,
    ]


def test_a_topic_keeps_its_id_until_it_is_made_anew(bus: Bus, bus_url: str, new_topic: NewTopic) -> None:
    topic, other = new_topic(partitions=2), new_topic()
    ids = bus.topic_ids([topic, other])
    assert list(ids) == [topic, other]
    assert None not in ids.values()
    assert ids[topic] != ids[other]
    write(bus, topic, timed(1))
    bus.create([TopicSpec(topic, 2)])
    with connect(bus_url) as later:
        assert later.topic_ids([topic, other]) == ids
    delete_topic(bus, topic)
    bus.create([TopicSpec(topic, 2)])
    assert bus.topic_ids([topic])[topic] not in (None, ids[topic])


def test_the_id_of_a_missing_topic(bus: Bus) -> None:
    with pytest.raises(TopicMissing, match="'not-there'"):
        bus.topic_ids(["not-there"])
