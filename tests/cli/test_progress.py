"""Progress of long commands: on a terminal, and nowhere else."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers import CLASSES, NO_DESCRIBE, TOPICS, Producer, learner, new_bus, settings_for, wait_for_window

from stream_cgzsl.cli import main
from stream_cgzsl.cli.progress import progress


class Terminal:
    """A terminal as standard error, and all that was written to it."""

    def __init__(self) -> None:
        self._ours, theirs = os.openpty()
        self.stderr = os.fdopen(theirs, "w")
        self._read: list[bytes] = []
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        try:
            while data := os.read(self._ours, 4096):
                self._read.append(data)
        except OSError:  # how Linux reports that the other side is closed
            return

    def said(self) -> str:
        self.stderr.close()
        self._thread.join()
        os.close(self._ours)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", b"".join(self._read).decode())


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    made = Terminal()
    with monkeypatch.context() as patched:
        patched.setenv("TERM", "xterm")
        patched.setenv("COLUMNS", "100")
        patched.setattr(sys, "stderr", made.stderr)
        yield made


def test_a_terminal_shows_what_is_done_and_of_how_much(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with terminal(monkeypatch) as made, progress() as show:
        show("features/0", 3, 10)
        show("generations", 2, 4)
        print("a result")
    said = made.said()
    assert re.search(r"generations .*2/4", said), said
    assert "a result" not in said
    assert capsys.readouterr().out == "a result\n"


def test_without_a_terminal_nothing_is_shown(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress() as show:
        show("features/0", 3, 10)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_long_commands_show_their_progress(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same lines on standard output, with a terminal and without."""
    url = f"sqlite:///{tmp_path / 'bus.db'}"
    with new_bus(url, 2) as bus, learner(settings_for(bus, TOPICS, **NO_DESCRIBE)) as worker:
        producer = Producer(bus)
        for number, name in enumerate(CLASSES[:2], 1):
            producer.describe(name)
            producer.teach(name)
            producer.boundary()
            wait_for_window(bus, number, TOPICS, worker.alive)
    stream = ["--bus", url, "--prefix", TOPICS.prefix]
    for command, shown in (
        (["check", *stream], r"generations .*2/2"),
        (["replay", *stream], r"windows .*2/2"),
        (["replay", *stream, "--with", "learner=ridge"], r"windows .*2/2"),
        (["copy", url, f"sqlite:///{tmp_path}/{{}}.db", "--prefix", TOPICS.prefix], r"records .*(\d+)/\1"),
    ):
        assert main([word.format("quiet") for word in command]) == 0
        quiet = capsys.readouterr()
        with terminal(monkeypatch) as made:
            assert main([word.format("loud") for word in command]) == 0
        assert re.search(shown, said := made.said()), said
        assert re.search(shown, quiet.err) is None
        assert capsys.readouterr().out.replace("loud.db", "quiet.db") == quiet.out
