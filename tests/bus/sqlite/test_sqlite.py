"""What is specific to the embedded bus: it is a file, it survives killed processes, and waiting takes no CPU time."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from stream_cgzsl.bus import Bus, TopicPartition, TopicSpec, connect
from stream_cgzsl.bus.sqlite import file as sqlite_file
from stream_cgzsl.bus.sqlite.place import network_file_system
from stream_cgzsl.errors import BusUnavailable, Refused, UsageError
from stream_cgzsl.schemas.message import Message

VICTIM = Path(__file__).with_name("sqlite_victim.py")


def kill_while_writing(url: str, after: int, delay: float) -> list[str]:
    """Kills the victim `delay` seconds after `after` acknowledgements. Returns all its acknowledgements."""
    victim = subprocess.Popen([sys.executable, str(VICTIM), url], stdout=subprocess.PIPE, text=True)
    assert victim.stdout is not None
    lines = [victim.stdout.readline() for _ in range(after)]
    time.sleep(delay)
    victim.send_signal(signal.SIGKILL)
    lines += victim.stdout.readlines()
    victim.stdout.close()
    assert victim.wait() == -signal.SIGKILL
    return [line for line in lines if line.endswith("\n")]


def keys(bus: Bus, topic: str) -> Counter[int]:
    end = bus.end_offsets(topic)[0]
    found: Counter[int] = Counter()
    with bus.reader({TopicPartition(topic, 0): 0}) as reader:
        while found.total() < end:
            records = reader.poll(1.0)
            assert records, f"{topic} ends at {end} and holds {found.total()}"
            found.update(int(record.key or b"") for record in records)
    return found


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_acknowledged_and_leaves_nothing_partial(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bus.db'}"
    moments = random.Random(5)
    acknowledged: dict[str, Counter[int]] = {"single": Counter(), "both": Counter()}
    with connect(url) as bus:
        bus.create([TopicSpec("single"), TopicSpec("left"), TopicSpec("right")])
        for _ in range(8):
            for line in kill_while_writing(url, moments.randint(1, 12), moments.random() * 0.02):
                what, number = line.split()
                acknowledged[what][int(number)] += 1
            single, left, right = (keys(bus, topic) for topic in ("single", "left", "right"))
            assert left == right, "a transaction is visible in one topic and not in the other"
            assert {n % 2 for n in left.values()} == {0}, "a transaction is partly visible"
            assert {n % 3 for n in single.values()} == {0}, "a flush is partly visible"
            assert not {number: n for number, n in acknowledged["both"].items() if left[number] < 2 * n}
            assert not {number: n for number, n in acknowledged["single"].items() if single[number] < 3 * n}


@pytest.mark.slow
def test_waiting_for_records_takes_under_two_percent_of_a_core(tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path / 'bus.db'}") as bus:
        bus.create([TopicSpec("t")])
        with bus.reader({TopicPartition("t", 0): 0}) as reader:
            reader.poll(0.1)
            wall, cpu = time.monotonic(), time.thread_time()
            assert reader.poll(3.0) == []
            assert (time.thread_time() - cpu) / (time.monotonic() - wall) < 0.02


@pytest.mark.slow
def test_standing_by_takes_under_two_percent_of_a_core(tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path / 'bus.db'}") as bus:
        bus.create([TopicSpec("t")])
        with bus.subscribe("t", "g") as owner, bus.subscribe("t", "g") as standby:
            owner.poll(0.0)
            wall, cpu = time.monotonic(), time.thread_time()
            assert standby.poll(3.0) == []
            assert (time.thread_time() - cpu) / (time.monotonic() - wall) < 0.02


def test_during_a_transaction_readers_see_the_old_state_and_writers_wait(tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path / 'bus.db'}") as bus:
        bus.create([TopicSpec("t")])
        with bus.publisher("p") as publisher, bus.writer() as writer:
            publisher.begin()
            publisher.send("t", Message(None, b"published"))
            publisher.flush()
            writer.send("t", Message(None, b"written"))
            waiting = threading.Thread(target=writer.flush)
            waiting.start()
            assert bus.end_offsets("t") == {0: 0}
            publisher.commit()
            waiting.join(30.0)
        with bus.reader({TopicPartition("t", 0): 0}) as reader:
            assert [record.value for record in reader.poll(1.0)] == [b"published", b"written"]


def test_a_file_keeps_everything_when_it_is_reopened(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bus.db'}?synchronous=full"
    with connect(url) as bus:
        bus.create([TopicSpec("t", 2, "compact", {"x": "y"})])
        with bus.writer() as writer:
            writer.send("t", Message(b"k", b"v"), 1)
            writer.flush()
    with connect(url) as bus:
        assert bus.topics() == {"t": TopicSpec("t", 2, "compact", {"x": "y"})}
        assert bus.end_offsets("t") == {0: 0, 1: 1}


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://host/x.db", "sqlite:///x.db?mode=ro"])
def test_an_invalid_url_is_rejected_with_an_example(url: str) -> None:
    with pytest.raises(UsageError, match="sqlite:///"):
        connect(url)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(BusUnavailable, match="not-there"):
        connect(f"sqlite:///{tmp_path / 'not-there' / 'bus.db'}")


def test_a_file_that_is_not_a_bus_is_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, not a database" * 100)
    with pytest.raises(Refused, match=r"notes\.txt"):
        connect(f"sqlite:///{path}")
    assert path.read_text().startswith("these are my notes")


def test_topics_of_a_file_from_before_there_were_ids_have_none(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bus.db'}"
    with connect(url) as bus:
        bus.create([TopicSpec("old")])
    with closing(sqlite3.connect(tmp_path / "bus.db")) as db:
        db.execute("DROP TABLE topic_ids")
    with connect(url) as bus:
        bus.create([TopicSpec("old"), TopicSpec("new")])
        ids = bus.topic_ids(["old", "new"])
        assert (ids["old"], ids["new"] is None) == (None, False)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/user/bus.db", None),
        ("/home/shared/bus.db", "nfs4"),
        ("/home/shared/local/bus.db", None),
        ("/home/sharedish/bus.db", None),
        ("/mnt/my disk/bus.db", "cifs"),
        ("/srv/bus.db", "fuse.sshfs"),
    ],
)
def test_a_network_file_system_is_recognised(path: str, kind: str | None) -> None:
    mounts = (
        "/dev/vda / ext4 rw 0 0\nhost:/x /home/shared nfs4 rw 0 0\n/dev/vdb /home/shared/local xfs rw 0 0\n"
        "//host/y /mnt/my\\040disk cifs rw 0 0\nz: /srv fuse.sshfs rw 0 0\n"
    )
    assert network_file_system(Path(path), mounts) == kind


def test_a_file_on_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "network_file_system", lambda _: "nfs4")
    with pytest.raises(Refused, match=r"bus\.db.*nfs4.*on a local disk"):
        connect(f"sqlite:///{tmp_path / 'bus.db'}")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_have_a_write_ahead_log_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system without shared memory: SQLite then goes on without one, and does not say so."""
    monkeypatch.setattr(sqlite_file, "_JOURNAL", "PRAGMA journal_mode = DELETE")
    with pytest.raises(Refused, match=r"journal mode is 'delete'.*on a local disk"):
        connect(f"sqlite:///{tmp_path / 'bus.db'}")
