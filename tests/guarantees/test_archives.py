"""A run copied into one file: it has everything, at the same offsets, and verifies with nothing else running."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest
from altering import expire
from guarded import Stream, Told, new_stream
from helpers import read
from kafka import KafkaAdminClient

from stream_cgzsl.bus import Bus, Record, TopicPartition, TopicSpec, connect, kafka_placing
from stream_cgzsl.bus.broker import Broker
from stream_cgzsl.bus.copy import copy
from stream_cgzsl.bus.kafka import KafkaBus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import Refused, UsageError
from stream_cgzsl.schemas.roles import ROLES


@pytest.mark.kafka
def test_a_run_on_kafka_verifies_from_a_file_with_no_broker_running(
    mortal: Broker, tmp_path: Path, undisturbed: list[Told]
) -> None:
    file = f"sqlite:///{tmp_path / 'run.db'}"
    with new_stream(mortal.url, tmp_path) as stream:
        stream.tell()
        stream.learn_until(3)
        assert stream.run("copy", stream.url, file, bus=False)[0] == 0
    mortal.stop()
    try:
        with connect(file) as bus:
            archive = Stream(file, tmp_path, bus, stream.topics)
            assert archive.told() == undisturbed
            code, said = archive.run("replay", "--verify")
            assert (code, said.splitlines()[-1]) == (0, "3 identical")
            assert archive.run("check")[0] == 0
            archive.tell(4)  # and it goes on from there
            archive.learn_until(4)
            archive.assert_sound(windows=4)
    finally:
        mortal.restart()


def test_every_record_keeps_its_place(learned: Stream, tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path / 'run.db'}") as target:
        copy(learned.bus, target, learned.topics)
        archive = Stream(target.url, tmp_path, target, learned.topics)
        assert archive.everything() == learned.everything()
        for topic, spec in target.topics().items():
            assert (spec.partitions, target.end_offsets(topic)) == (
                learned.bus.topics()[topic].partitions,
                learned.bus.end_offsets(topic),
            )


def test_a_copy_does_not_mix_with_what_is_there(learned: Stream, tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path / 'run.db'}") as target:
        copy(learned.bus, target, learned.topics)
        with pytest.raises(UsageError, match="has records already"):
            copy(learned.bus, target, learned.topics)


def test_a_stream_there_is_not_is_no_empty_copy(embedded: Stream, tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path / 'run.db'}") as target, pytest.raises(UsageError, match="has no topics here"):
        copy(embedded.bus, target, type(embedded.topics)("nobody"))


@pytest.mark.kafka
def test_a_run_on_kafka_can_be_lost_and_restored_from_its_file(
    mortal: Broker, tmp_path: Path, undisturbed: list[Told]
) -> None:
    """Transactions, expired features and compacted topics leave gaps; every record is at its old offset all the same."""
    file = f"sqlite:///{tmp_path / 'run.db'}"
    with new_stream(mortal.url, tmp_path) as stream, connect(file) as archive:
        stream.tell()
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
        assert stream.told() == undisturbed
        stream.tell(4)  # and it goes on from there
        stream.learn_until(4)
        assert stream.told()[:3] == undisturbed and len(stream.told()) == 4


@pytest.mark.kafka
def test_a_run_on_the_embedded_bus_can_be_brought_to_a_cluster(kafka_url: str, embedded: Stream) -> None:
    embedded.tell()
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
    monkeypatch.setattr(kafka_placing, "_TOGETHER", 7)  # so that large gaps take several transactions
    topics = Topics(f"gaps-{uuid.uuid4().hex[:8]}")
    tp = TopicPartition(topics["features"], 0)
    records = [
        Record(*tp, offset, 1_000 + offset, b"%d" % offset, b"v", (("h", b"x"),)) for offset in set(range(40)) - missing
    ]
    with connect(f"sqlite:///{tmp_path / 'gaps.db'}") as source, connect(kafka_url) as target:
        source.create([TopicSpec(tp.topic, 1, cleanup)])
        with source.placing(tp) as placing:
            placing.begin(0)
            placing.add(sorted(records, key=lambda record: record.offset))
            placing.end(42)
        assert copy(source, target, topics) == len(records)
        assert target.end_offsets(tp.topic) == {0: 42}
        assert read(target, tp.topic) == sorted(records, key=lambda record: record.offset)


@pytest.mark.kafka
def test_a_gap_that_kafka_cannot_have_is_refused(kafka_url: str, tmp_path: Path) -> None:
    topics = Topics(f"gaps-{uuid.uuid4().hex[:8]}")
    tp = TopicPartition(topics["features"], 0)
    with connect(f"sqlite:///{tmp_path / 'gaps.db'}") as source, connect(kafka_url) as target:
        source.create([TopicSpec(tp.topic)])
        with source.placing(tp) as placing:
            placing.begin(0)
            placing.add([Record(*tp, 1, 1_000, b"k", b"v", ())])
            placing.end(2)
        with pytest.raises(Refused, match=f"{tp.topic}/0: one offset alone before the first record"):
            copy(source, target, topics)


def delete_topics(bus: Bus, topics: Topics) -> None:
    assert isinstance(bus, KafkaBus)
    admin = KafkaAdminClient(**bus.settings.admin())
    admin.delete_topics([topics[role] for role in ROLES])
    admin.close()
    while set(bus.topics()) & {topics[role] for role in ROLES}:
        time.sleep(0.1)
