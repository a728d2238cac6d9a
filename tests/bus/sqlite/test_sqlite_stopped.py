"""A process that is stopped (as by SIGSTOP, a debugger or a full swap) while it holds something others need."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from patience import until

from stream_cgzsl.bus import Record, TopicPartition, TopicSpec, connect
from stream_cgzsl.bus.sqlite import file
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.schemas.message import Message

HOLDER = Path(__file__).with_name("sqlite_holder.py")
pytestmark = pytest.mark.slow


@contextmanager
def stopped(url: str, what: str) -> Iterator[subprocess.Popen[str]]:
    """Another process, stopped once it holds what it should."""
    command = [sys.executable, str(HOLDER), url, what]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "holding\n"
            holder.send_signal(signal.SIGSTOP)
            yield holder
        finally:
            holder.kill()


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux tells who holds a lock")
def test_whoever_waits_for_a_stopped_writer_is_told_which_process_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "_LOCK_SECONDS", 0.5)
    url = f"sqlite:///{tmp_path / 'bus.db'}"
    with connect(url) as bus:
        bus.create([TopicSpec("t")])
        with stopped(url, "transaction") as holder:
            with pytest.raises(BusUnavailable) as raised:
                bus.publisher("holder")
            assert f"process {holder.pid} (python" in str(raised.value)
            assert f"is stopped: kill -CONT {holder.pid} lets it continue" in str(raised.value)
        with bus.publisher("holder") as publisher:
            publisher.begin()


def test_a_standby_takes_over_from_a_stopped_member_which_then_commits_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bus.db'}?session_timeout_ms=1000"
    with connect(url) as bus:
        bus.create([TopicSpec("t")])
        with bus.writer() as writer:
            writer.send("t", Message(None, b"x"))
        with stopped(url, "member") as former, bus.subscribe("t", "g") as standby:
            found: list[Record] = []
            until(lambda: found.extend(standby.poll(0.2)) or bool(found))  # type: ignore[func-returns-value]
            assert standby.assignment() == {TopicPartition("t", 0)}
            former.send_signal(signal.SIGCONT)
            assert former.stdin is not None and former.stdout is not None
            former.stdin.write("commit\n")
            former.stdin.flush()
            assert former.stdout.readline() == "0 0\n"
            assert bus.committed("g", "t") == {}
            standby.commit({TopicPartition("t", 0): 1})
            assert bus.committed("g", "t") == {0: 1}
