"""Compaction of a bus file: what newer records of a compacted topic have replaced is gone, everything else stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stream_cgzsl.bus import Record, TopicPartition, TopicSpec
from stream_cgzsl.bus.sqlite.bus import SqliteBus
from stream_cgzsl.bus.sqlite.compaction import compact
from stream_cgzsl.cli import main
from stream_cgzsl.schemas.message import Message


def read(bus: SqliteBus, topic: str, partition: int = 0) -> list[Record]:
    with bus.reader({TopicPartition(topic, partition): 0}) as reader:
        return reader.poll(0.0)


@pytest.fixture
def bus(tmp_path: Path) -> SqliteBus:
    return SqliteBus(f"sqlite:///{tmp_path / 'bus.db'}")


def test_the_newest_record_of_each_key_stays_at_its_offset(bus: SqliteBus) -> None:
    bus.create([TopicSpec("c", 2, "compact"), TopicSpec("k", 1, "keep")])
    with bus.writer() as writer:
        for topic, partition in (("c", 0), ("c", 1), ("k", 0)):
            for key, value in ((b"a", b"1"), (b"b", b"1"), (None, b"x"), (b"a", b"2"), (b"b", None), (b"c", b"1")):
                writer.send(topic, Message(key, value), partition)
    before = {place: read(bus, *place) for place in (("c", 0), ("c", 1), ("k", 0))}
    assert compact(bus) == 4
    for partition in (0, 1):
        assert read(bus, "c", partition) == [r for r in before["c", partition] if r.offset in (2, 3, 4, 5)]
    assert read(bus, "k") == before["k", 0]
    assert bus.begin_offsets("c") == {0: 0, 1: 0}
    assert bus.end_offsets("c") == {0: 6, 1: 6}
    assert compact(bus) == 0
    with bus.writer() as writer:
        receipt = writer.send("c", Message(b"a", b"3"), 0)
    assert receipt.offset == 6


def test_the_file_becomes_smaller(bus: SqliteBus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bus.create([TopicSpec("c", 1, "compact")])
    with bus.writer() as writer:
        for number in range(40):
            writer.send("c", Message(b"k", bytes([number]) * 100_000))
    assert main(["compact", str(tmp_path / "bus.db")]) == 0
    assert "39 records removed" in capsys.readouterr().out
    assert os.path.getsize(tmp_path / "bus.db") < 400_000  # noqa: PTH202
    assert [record.offset for record in read(bus, "c")] == [39]


@pytest.mark.parametrize("name", ["none.db", "kafka://a:1"])
def test_only_a_file_that_exists_is_compacted(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compact", name if "://" in name else str(tmp_path / name)]) == 2
    assert name in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
