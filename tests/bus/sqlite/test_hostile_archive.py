"""A stream in a file that somebody gave us: whatever is in it, a command ends with one line of text."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from damage import damaged
from helpers import CLASSES, TOPICS, Producer, learner, new_bus, settings_for, sqlite_url, wait_for_window
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_cgzsl.bus import TopicPartition, connect
from stream_cgzsl.bus.sqlite.file import MAX_VALUE_BYTES
from stream_cgzsl.cli import main
from stream_cgzsl.errors import CgzslError, Refused

pytestmark = pytest.mark.slow

EXIT_CODES = (0, 1, 2, 3, 4, 5, 7, 8)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream of one window."""
    folder = tmp_path_factory.mktemp("archive")
    with new_bus(sqlite_url(folder)) as bus, learner(settings_for(bus)) as worker:
        producer = Producer(bus)
        producer.describe(*CLASSES)
        producer.teach(*CLASSES[:4], rows=3)
        producer.boundary()
        wait_for_window(bus, 1, alive=worker.alive)
    with closing(sqlite3.connect(folder / "bus.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode = DELETE")
    return folder / "bus.db"


@pytest.fixture
def file(archive: Path, tmp_path: Path) -> Path:
    path = tmp_path / "bus.db"
    path.write_bytes(archive.read_bytes())
    return path


def run(*command: str, file: Path) -> int:
    return main([*command, "--bus", f"sqlite:///{file}", "--prefix", TOPICS.prefix])


def test_the_archive_is_valid(file: Path) -> None:
    assert [run(*command, file=file) for command in (("check",), ("replay",), ("topics", "check"))] == [0, 0, 0]


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_a_command_on_a_damaged_archive_ends_with_a_known_exit_code(archive: Path, data: st.DataObject) -> None:
    folder = archive.with_name("damaged")
    folder.mkdir(exist_ok=True)
    for left in folder.iterdir():
        left.unlink()
    file = folder / "bus.db"
    file.write_bytes(data.draw(damaged(archive.read_bytes(), most=512)))
    for command in (("topics", "show"), ("check",), ("dead-letters", "show"), ("export", str(folder / "out"))):
        assert run(*command, file=file) in EXIT_CODES, command


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET headers = x'ffffffff'",
        "UPDATE records SET headers = x'0100000001000000'",
        "UPDATE records SET headers = x'0200000001000000010000' || x'00ff41'",
        "UPDATE records SET headers = 'text'",
        "UPDATE records SET value = 'text'",
        "UPDATE records SET key = 1.5",
        "UPDATE topics SET settings = 'nonsense'",
        "UPDATE partitions SET first = 'nonsense'",
    ],
)
def test_an_archive_with_strange_rows_is_refused(file: Path, statement: str) -> None:
    change(file, lambda db: db.execute(statement))
    tp = TopicPartition(TOPICS["windows"], 0)
    with pytest.raises(CgzslError), connect(f"sqlite:///{file}") as bus:
        bus.topics()
        end = bus.end_offsets(tp.topic)[0]
        with bus.reader({tp: bus.begin_offsets(tp.topic)[0]}) as reader:
            while reader.position(tp) < end:
                assert reader.poll(0.1)


def test_an_archive_with_a_record_that_is_too_large_is_refused(file: Path) -> None:
    change(file, lambda db: db.execute("DELETE FROM records WHERE place NOT IN (SELECT min(place) FROM records)"))
    change(file, lambda db: db.execute("UPDATE records SET value = zeroblob(?)", (2 * MAX_VALUE_BYTES + 1,)))
    tp = TopicPartition(TOPICS["attributes"], 0)
    with (
        connect(f"sqlite:///{file}") as bus,
        bus.reader({tp: 0}) as reader,
        pytest.raises(Refused, match=r"too big; the file is damaged"),
    ):
        reader.poll(1.0)


def test_a_schema_that_calls_functions_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(file, lambda db: db.execute("ALTER TABLE topics RENAME TO real"))
    change(file, lambda db: db.execute("CREATE VIEW topics AS SELECT *, load_extension('/tmp/x.so') AS x FROM real"))
    assert run("topics", "show", file=file) in (3, 4)
    assert "stream-cgzsl: " in capsys.readouterr().err


def change(file: Path, statement: Callable[[sqlite3.Connection], Any]) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        statement(db)
