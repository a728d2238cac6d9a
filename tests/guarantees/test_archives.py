"""A run copied into one file: it has everything, at the same offsets, and verifies with nothing else running."""

from __future__ import annotations

from pathlib import Path

import pytest
from altering import altered
from guarded import Stream, Told, new_stream

from stream_cgzsl.bus import Record, connect
from stream_cgzsl.bus.broker import Broker
from stream_cgzsl.bus.copy import copy
from stream_cgzsl.errors import Refused, UsageError


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
def test_what_has_no_gaps_can_go_to_kafka(kafka_url: str, embedded: Stream) -> None:
    """A run on the embedded bus has none: an archive of it can be brought to a cluster."""
    embedded.tell()
    embedded.learn_until(3)
    with connect(kafka_url) as target:
        copy(embedded.bus, target, embedded.topics)
        moved = Stream(kafka_url, embedded.directory, target, embedded.topics)
        assert moved.everything() == embedded.everything()
        moved.assert_sound(windows=3)


@pytest.mark.kafka
def test_what_has_gaps_cannot_go_to_kafka(kafka_url: str, embedded: Stream, tmp_path: Path) -> None:
    embedded.tell(1)
    topic = embedded.topics["features"]
    place = embedded.everything()["features"][2]

    def change(_: str, record: Record) -> Record | None:
        return None if record == place else record

    holed = altered(embedded, tmp_path / "holed.db", change)
    with connect(kafka_url) as target, pytest.raises(Refused, match=f"{topic}/.* copy to SQLite instead"):
        copy(holed.bus, target, embedded.topics)
