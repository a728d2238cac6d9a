"""Worker processes as children: started with the same settings, stopped together."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Any

from stream_cgzsl.runtime.settings import Settings, to_environ, variable
from stream_cgzsl.workers.process import PARENT_VARIABLE

log = logging.getLogger("up")

_PATIENCE_SECONDS = 20.0


def start(command: str, settings: Settings, output: IO[Any] | None = None) -> subprocess.Popen[bytes]:
    """A `learn`, `score` or `evaluate` process with these settings, in a session of its own: Ctrl-C reaches only us."""
    arguments = [sys.executable, "-m", "stream_cgzsl", command]
    ours = {variable(name) for name in Settings.model_fields}
    environ = {name: value for name, value in os.environ.items() if name not in ours}
    environ |= {**to_environ(settings), PARENT_VARIABLE: str(os.getpid())}
    return subprocess.Popen(arguments, env=environ, stderr=output, stdout=output, start_new_session=True)


def end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """SIGTERM to all; SIGKILL to those that take too long."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run_together(settings: Settings, stop: threading.Event) -> int:
    """Runs learner, scorer and evaluator until `stop`, or until one of them ends: then the others are stopped too.

    Their HTTP pages, if any, are at the port of the settings and the next two.
    """
    processes = {
        command: start(command, settings.model_copy(update={"port": settings.port and settings.port + place}))
        for place, command in enumerate(("learn", "score", "evaluate"))
    }
    code = 0
    try:
        while not stop.wait(0.5):
            for command, process in processes.items():
                if process.poll() is not None:
                    code = process.returncode or 1
                    log.error("%s ended with exit code %d; stopping the others", command, process.returncode)
                    return code
    finally:
        end(list(processes.values()))
    return code
