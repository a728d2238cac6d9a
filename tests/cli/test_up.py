"""`up`: learner, scorer and evaluator in one command, up to an answer and a clean end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import CLASSES, Producer, questions_about, wait_for_answers, wait_for_window
from patience import PATIENCE_SECONDS

from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics

pytestmark = pytest.mark.slow

A, B = CLASSES[:2]
UP = [sys.executable, "-m", "stream_cgzsl", "up", "--learner", "closed-form"]


def test_up_creates_topics_learns_answers_evaluates_and_ends(tmp_path: Path) -> None:
    url, topics = f"sqlite:///{tmp_path}/up.db", Topics()
    log, port = tmp_path / "up.log", _three_free_ports()
    flags = [
        "--attributes",
        "8",
        "--features",
        "16",
        "--quiet-seconds",
        "1000",
        "--partitions",
        "2",
        "--port",
        str(port),
    ]
    with log.open("wb") as output:
        up = subprocess.Popen([*UP, "--bus", url, *flags], stdout=output, stderr=output)
    try:
        with connect(url) as bus:
            while "cgzsl.predictions" not in bus.topics():
                with pytest.raises(subprocess.TimeoutExpired):
                    up.wait(0.2)
            producer = Producer(bus, topics)
            wait_for_window(bus, 0, topics)
            producer.describe(A, B)
            producer.teach(A, B, rows=20)
            producer.boundary()
            wait_for_window(bus, 1, topics)
            questions = questions_about(A, B, count=10)
            producer.ask(questions)
            answers = wait_for_answers(bus, questions, topics)
            while not bus.end_offsets(topics["evaluations"])[0]:
                with pytest.raises(subprocess.TimeoutExpired):
                    up.wait(0.2)
        assert {(p.status, p.generation) for p in answers.values()} == {("ok", 1)}
        assert {p.class_id for p in answers.values()} == {A, B}
    finally:
        up.send_signal(signal.SIGTERM)
        code = up.wait(PATIENCE_SECONDS)
    assert code == 0
    assert "Traceback" not in log.read_text()
    pages = [f"metrics at http://127.0.0.1:{port + place}/metrics" for place in range(3)]
    assert [line for line in pages if line not in log.read_text()] == []


def test_up_ends_when_a_worker_ends(tmp_path: Path) -> None:
    """Without dimensions the learner cannot start: the others are stopped, and the exit code is the learner's."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CGZSL_")}
    ended = subprocess.run(
        [*UP, "--bus", f"sqlite:///{tmp_path}/up.db"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode == 2
    assert "start the learner once with --attributes N --features M" in ended.stderr
    assert "learn ended with exit code 2; stopping the others" in ended.stderr
    assert "Traceback" not in ended.stderr


def _three_free_ports() -> int:
    """The first of three consecutive ports that are free."""
    for first in range(23450, 60000, 3):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + 3):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("no free ports")


def test_the_workers_do_not_outlive_a_killed_up(tmp_path: Path) -> None:
    url, log = f"sqlite:///{tmp_path}/up.db", tmp_path / "up.log"
    with log.open("wb") as output:
        up = subprocess.Popen(
            [*UP, "--bus", url, "--attributes", "8", "--features", "16"], stdout=output, stderr=output
        )
    with connect(url) as bus:
        while "cgzsl.windows" not in bus.topics():
            with pytest.raises(subprocess.TimeoutExpired):
                up.wait(0.2)
        wait_for_window(bus, 0, Topics())
    workers = [int(pid) for pid in Path(f"/proc/{up.pid}/task/{up.pid}/children").read_text().split()]
    up.kill()
    up.wait(PATIENCE_SECONDS)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(_runs(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(workers) == 3
    assert not any(_runs(pid) for pid in workers)


def _runs(pid: int) -> bool:
    """Whether a process is running; a zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
