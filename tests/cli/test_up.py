"""`up`: learner and scorer together, from one command to the answer, and a clean end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import CLASSES, PATIENCE_SECONDS, Producer, questions_about, wait_for_answers, wait_for_window

from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics

A, B = CLASSES[:2]
UP = [sys.executable, "-m", "stream_cgzsl", "up", "--learner", "closed-form"]


def test_up_makes_the_topics_learns_answers_and_ends(tmp_path: Path) -> None:
    url, topics = f"sqlite:///{tmp_path}/up.db", Topics()
    log = tmp_path / "up.log"
    dimensions = ["--attributes", "8", "--features", "16", "--quiet-seconds", "1000", "--partitions", "2"]
    with log.open("wb") as output:
        up = subprocess.Popen([*UP, "--bus", url, *dimensions], stdout=output, stderr=output)
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
        assert {(p.status, p.generation) for p in answers.values()} == {("ok", 1)}
        assert {p.class_id for p in answers.values()} == {A, B}
    finally:
        up.send_signal(signal.SIGTERM)
        code = up.wait(PATIENCE_SECONDS)
    assert code == 0
    assert "Traceback" not in log.read_text()


def test_up_ends_when_one_of_them_cannot_go_on(tmp_path: Path) -> None:
    """No dimensions: the learner cannot start, so the scorer is ended too, and the exit code is the learner's."""
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
    assert "learn ended with exit code 2; ending the rest" in ended.stderr
    assert "Traceback" not in ended.stderr


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
    assert len(workers) == 2
    assert not any(_runs(pid) for pid in workers)


def _runs(pid: int) -> bool:
    """Whether a process does anything: one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
