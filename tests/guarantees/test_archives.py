"""A stream copied into one file: it is complete, at the same offsets, and can be verified without a broker."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from expiry import expire
from guarded import Result, Stream, new_stream
from helpers import read
from kafka import KafkaAdminClient
from patience import until

from stream_cgzsl.bus import Bus, Record, TopicPartition, TopicSpec, connect
from stream_cgzsl.bus.copy import copy
from stream_cgzsl.bus.kafka import offset_writer
from stream_cgzsl.bus.kafka.bus import KafkaBus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.demo.broker import Broker
from stream_cgzsl.errors import Refused, UsageError
from stream_cgzsl.schemas.roles import ROLES


@pytest.mark.kafka
def test_a_stream_on_kafka_is_verified_from_a_file_without_a_broker(
    restartable: Broker, tmp_path: Path, undisturbed: list[Result]
) -> None:
    file = f"sqlite:///{tmp_path / 'run.db'}"
    with new_stream(restartable.url, tmp_path) as stream:
        stream.send_tasks()
        stream.learn_until(3)
        assert stream.run("copy", stream.url, file, bus=False)[0] == 0
    restartable.stop()
    try:
        with connect(file) as bus:
            archive = Stream(file, tmp_path, bus, stream.topics)
            assert archive.results() == undisturbed
            code, said = archive.run("replay", "--verify")
            assert (code, said.splitlines()[-1]) == (0, "3 identical")
            assert archive.run("check")[0] == 0
            archive.send_tasks(4)  # and it continues from there
            archive.learn_until(4)
            archive.assert_sound(windows=4)
    finally:
        restartable.restart()


def test_every_record_keeps_its_offset(learned: Stream, tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path / 'run.db'}") as target:
        copy(learned.bus, target, learned.topics)
        archive = Stream(target.url, tmp_path, target, learned.topics)
        assert archive.everything() == learned.everything()
        for topic, spec in target.topics().items():
            assert (spec.partitions, target.end_offsets(topic)) == (
                learned.bus.topics()[topic].partitions,
                learned.bus.end_offsets(topic),
            )


def test_a_copy_is_not_mixed_with_existing_records(learned: Stream, tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path / 'run.db'}") as target:
        copy(learned.bus, target, learned.topics)
        with pytest.raises(UsageError, match="has records already"):
            copy(learned.bus, target, learned.topics)


def test_a_stream_that_does_not_exist_is_not_copied(embedded: Stream, tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path / 'run.db'}") as target, pytest.raises(UsageError, match="has no topics here"):
        copy(embedded.bus, target, type(embedded.topics)("nobody"))


@pytest.mark.kafka
def test_a_stream_on_kafka_is_restored_from_its_file(
    restartable: Broker, tmp_path: Path, undisturbed: list[Result]
) -> None:
    """Transactions, expired features and compacted topics leave gaps; still every record is at its old offset."""
    file = f"sqlite:///{tmp_path / 'run.db'}"
    with new_stream(restartable.url, tmp_path) as stream, connect(file) as archive:
        stream.send_tasks()
        stream.learn_until(3)
        expire(stream.bus, stream.topics["features"], 0, 2)
        copy(stream.bus, archive, stream.topics)
        before = stream.everything()
        begins = {role: stream.bus.begin_offsets(stream.topics[role]) for role in ROLES}
        ends = {role: stream.bus.end_offsets(stream.topics[role]) for role in ROLES}
        delete_topics(stream.bus, stream.topics)
        assert stream.run("copy", file, stream.url, bus=False)[0] == 0
        assert stream.everything() == before
        assert {role: stream.bus.begin_offsets(stream.topics[role]) for role in ROLES} == begins
        assert {role: stream.bus.end_offsets(stream.topics[role]) for role in ROLES} == ends
        assert stream.results() == undisturbed
        stream.send_tasks(4)  # and it continues from there
        stream.learn_until(4)
        assert stream.results()[:3] == undisturbed and len(stream.results()) == 4


@pytest.mark.kafka
def test_a_stream_on_the_embedded_bus_can_be_moved_to_kafka(kafka_url: str, embedded: Stream) -> None:
    embedded.send_tasks()
    embedded.learn_until(3)
    with connect(kafka_url) as target:
        copy(embedded.bus, target, embedded.topics)
        moved = Stream(kafka_url, embedded.directory, target, embedded.topics)
        assert moved.everything() == embedded.everything()
        moved.assert_sound(windows=3)


@pytest.mark.kafka
@pytest.mark.parametrize("missing", [{0, 1}, {1}, {2, 3}, {1, 3}, {4, 5, 6}, set(range(1, 30)), set(range(40))])
@pytest.mark.parametrize("cleanup", ["keep", "compact"])
def test_gaps_of_any_size_are_kept_on_kafka(
    kafka_url: str, tmp_path: Path, missing: set[int], cleanup: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offset_writer, "_MAX_BATCH", 7)  # so that large gaps take several transactions
    topics = Topics(f"gaps-{uuid.uuid4().hex[:8]}")
    tp = TopicPartition(topics["features"], 0)
    records = [
        Record(*tp, offset, 1_000 + offset, b"%d" % offset, b"v", (("h", b"x"),)) for offset in set(range(40)) - missing
    ]
    with connect(f"sqlite:///{tmp_path / 'gaps.db'}") as source, connect(kafka_url) as target:
        source.create([TopicSpec(tp.topic, 1, cleanup)])
        with source.offset_writer(tp) as writer:
            writer.begin(0)
            writer.add(sorted(records, key=lambda record: record.offset))
            writer.end(42)
        assert copy(source, target, topics) == len(records)
        assert target.end_offsets(tp.topic) == {0: 42}
        assert read(target, tp.topic) == sorted(records, key=lambda record: record.offset)


@pytest.mark.kafka
def test_a_gap_that_kafka_cannot_represent_is_refused(kafka_url: str, tmp_path: Path) -> None:
    topics = Topics(f"gaps-{uuid.uuid4().hex[:8]}")
    tp = TopicPartition(topics["features"], 0)
    with connect(f"sqlite:///{tmp_path / 'gaps.db'}") as source, connect(kafka_url) as target:
        source.create([TopicSpec(tp.topic)])
        with source.offset_writer(tp) as writer:
            writer.begin(0)
            writer.add([Record(*tp, 1, 1_000, b"k", b"v", ())])
            writer.end(2)
        with pytest.raises(Refused, match=f"{tp.topic}/0: one offset alone before the first record"):
            copy(source, target, topics)


def delete_topics(bus: Bus, topics: Topics) -> None:
    assert isinstance(bus, KafkaBus)
    admin = KafkaAdminClient(**bus.settings.admin())
    admin.delete_topics([topics[role] for role in ROLES])
    admin.close()
    until(lambda: not set(bus.topics()) & {topics[role] for role in ROLES}, "the deletion of the topics")
