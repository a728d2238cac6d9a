"""Files that someone gave us: whatever stands in them costs at most one line of text, and never more memory than they say."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import CLASSES, TOPICS, Producer, learner, new_bus, settings_for, sqlite_url, wait_for_window
from safetensors.numpy import save

from stream_cgzsl import generation_file
from stream_cgzsl.bus import TopicPartition, connect
from stream_cgzsl.bus.sqlite_file import MAX_VALUE_BYTES
from stream_cgzsl.cli import main
from stream_cgzsl.errors import CgzslError, Refused, UsageError
from stream_cgzsl.generation import Generation
from stream_cgzsl.learners.snapshots import from_bytes
from stream_cgzsl.settings import MAX_FILE_BYTES, load

DEEP = "[" * 100_000 + "]" * 100_000


# ---- an exported generation


def exported(path: Path, **changes: Any) -> Path:
    """A generation's file, with other metadata in it than there should be."""
    arrays = {name: np.zeros(shape, np.float32) for name, shape in (("vectors", (2, 3)), ("biases", 2), ("centre", 3))}
    whole = Generation(1, ("a", "b"), np.ones(2, bool), **arrays)
    generation_file.write(whole, path)
    if changes:
        meta = {
            "number": 1,
            "class_ids": ["a", "b"],
            "metric": whole.metric,
            "transform": whole.transform,
            "servable": True,
            "calibration": {},
            "digest": whole.digest,
            **changes,
        }
        text = changes.get("instead", json.dumps(meta))
        path.write_bytes(save({**arrays, "seen": np.ones(2, np.uint8)}, metadata={"cgzsl.generation.v1": text}))
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"class_ids": 7},
        {"class_ids": [1, 2]},
        {"class_ids": [None, None]},
        {"number": [1]},
        {"calibration": 3},
        {"metric": {}},
        {"digest": None},
        {"instead": DEEP},
        {"instead": "[1, 2]"},
        {"instead": "nonsense"},
    ],
    ids=str,
)
def test_a_generation_with_strange_metadata_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = exported(tmp_path / "g.safetensors", **changes)
    with pytest.raises(UsageError, match=f"^{path} is "):
        generation_file.read(path)


@pytest.mark.parametrize("seed", range(60))
def test_a_generation_with_changed_bytes_is_refused_or_the_same(tmp_path: Path, seed: int) -> None:
    path = exported(tmp_path / "g.safetensors")
    digest = generation_file.read(path).digest
    path.write_bytes(damaged(path.read_bytes(), seed))
    try:
        assert generation_file.read(path).digest == digest
    except UsageError as error:
        assert str(error).startswith(f"{path} is ")


def test_a_generation_larger_than_any_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "g.safetensors"
    with path.open("wb") as file:
        file.truncate(generation_file.MAX_FILE_BYTES + 1)  # a hole: it takes no room
    with pytest.raises(UsageError, match="larger than"):
        generation_file.read(path)


@pytest.mark.parametrize("data", [b"", b"\xff" * 8, b"\x00" * 8, (2**40).to_bytes(8, "little") + b"{}"])
def test_bytes_that_are_no_snapshot(data: bytes) -> None:
    with pytest.raises(ValueError, match=f"these {len(data)} bytes"):
        from_bytes(data)


def test_a_snapshot_whose_metadata_is_too_deep() -> None:
    with pytest.raises(ValueError, match="not a learner's snapshot"):
        from_bytes(save({"a": np.zeros(1, np.float32)}, metadata={"meta": DEEP}))


# ---- a settings file


def test_a_settings_file_has_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(b"#" * MAX_FILE_BYTES)
    load({}, file, {})
    file.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(UsageError, match="at most 1,048,576 bytes"):
        load({}, file, {})


@pytest.mark.parametrize("text", [f"options = {DEEP}", "options = 3", "\x00"])
def test_a_settings_file_that_makes_no_sense(tmp_path: Path, text: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=f"^{file}"):
        load({}, file, {})


@pytest.mark.parametrize("text", ["{" + DEEP, '{"a":' + DEEP + "}", "{not json"])
def test_a_variable_that_makes_no_sense(text: str) -> None:
    with pytest.raises(UsageError, match=r"^CGZSL_OPTIONS"):
        load({}, None, {"CGZSL_OPTIONS": text})


# ---- a stream in a file


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A stream of one window, as `copy` would hand it over."""
    folder = tmp_path_factory.mktemp("archive")
    with new_bus(sqlite_url(folder)) as bus, learner(settings_for(bus)) as worker:
        producer = Producer(bus)
        producer.describe(*CLASSES)
        producer.teach(*CLASSES[:4], rows=3)
        producer.boundary()
        wait_for_window(bus, 1, alive=worker.alive)
    with sqlite3.connect(folder / "bus.db") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    return (folder / "bus.db").read_bytes()


@pytest.fixture
def file(archive: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "bus.db"
    path.write_bytes(archive)
    return path


def run(*command: str, file: Path) -> int:
    return main([*command, "--bus", f"sqlite:///{file}", "--prefix", TOPICS.prefix])


def test_the_archive_is_sound(file: Path) -> None:
    assert [run(*command, file=file) for command in (("check",), ("replay",), ("topics", "check"))] == [0, 0, 0]


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_archive_ends_a_command_with_one_of_its_exit_codes(file: Path, archive: bytes, seed: int) -> None:
    file.write_bytes(damaged(archive, seed, times=400))
    for command in (("topics", "show"), ("check",), ("dead-letters", "show"), ("export", str(file.parent / "out"))):
        code = run(*command, file=file)
        assert code in (0, 1, 2, 3, 4, 5, 7, 8), command


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
        "DROP TABLE records",
    ],
)
def test_an_archive_with_strange_rows_is_refused(file: Path, statement: str) -> None:
    change(file, lambda db: db.execute(statement))
    with pytest.raises(CgzslError), connect(f"sqlite:///{file}") as bus:
        bus.topics()
        [end] = bus.end_offsets(TOPICS["windows"]).values()
        with bus.reader({TopicPartition(TOPICS["windows"], 0): bus.begin_offsets(TOPICS["windows"])[0]}) as reader:
            while reader.position(TopicPartition(TOPICS["windows"], 0)) < end:
                assert reader.poll(0.1)
        raise Refused("there is nothing to read any more") if "DROP" in statement else AssertionError("it was read")


def test_an_archive_with_a_record_too_large_to_hold_is_refused(file: Path) -> None:
    change(file, lambda db: db.execute("UPDATE records SET value = zeroblob(?)", (2 * MAX_VALUE_BYTES + 1,)), rows=1)
    tp = TopicPartition(TOPICS["attributes"], 0)
    with (
        connect(f"sqlite:///{file}") as bus,
        bus.reader({tp: 0}) as reader,
        pytest.raises(Refused, match=r"too big; the file is damaged"),
    ):
        reader.poll(1.0)


def test_a_schema_that_calls_functions_is_not_obeyed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(file, lambda db: db.execute("ALTER TABLE topics RENAME TO real"))
    change(file, lambda db: db.execute("CREATE VIEW topics AS SELECT *, load_extension('/tmp/x.so') AS x FROM real"))
    assert run("topics", "show", file=file) in (3, 4)
    assert "stream-cgzsl: " in capsys.readouterr().err


def change(file: Path, statement: Callable[[sqlite3.Connection], Any], rows: int | None = None) -> None:
    with sqlite3.connect(file) as db:
        if rows is not None:
            db.execute("DELETE FROM records WHERE place NOT IN (SELECT min(place) FROM records)")
        statement(db)
    db.close()


def damaged(data: bytes, seed: int, times: int = 4) -> bytes:
    """The same with some bytes changed, or cut short."""
    draw = random.Random(seed)
    changed = bytearray(data)
    for _ in range(times):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed[: draw.randrange(1, len(changed))] if seed % 4 == 0 else changed)
