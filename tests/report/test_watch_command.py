"""`stream-cgzsl watch` as people type it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from helpers import TOPICS, new_bus, sqlite_url

from stream_cgzsl.cli import main

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_and_ends_cleanly(tmp_path: Path, number: int) -> None:
    url = sqlite_url(tmp_path)
    with new_bus(url):
        pass
    command = [sys.executable, "-m", "stream_cgzsl", "watch", "--bus", url, "--prefix", TOPICS.prefix, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address, words = line.split(" ", 1)
        assert words == "shows the stream; press Ctrl-C to stop\n"
        with urlopen(address, timeout=20) as page:
            assert page.status == 200
        process.send_signal(number)
        output, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, output) == (0, "")
    assert "Traceback" not in errors


def test_a_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "stream_cgzsl", "watch", "--bus", sqlite_url(tmp_path), "--port", str(port)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"stream-cgzsl: cannot serve the page on 127.0.0.1:{port}: [Errno 98] Address already in use; "
        "choose another --host or --port\n"
    )


def test_an_invalid_port_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--port", "eighty"]) == 2
    assert capsys.readouterr().err.startswith("stream-cgzsl: --port: port: ")
