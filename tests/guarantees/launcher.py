"""Starts worker processes that die, stop or wait at a chosen point. The product knows nothing of this.

A point is a place before, in or after a numbered step, in a given window. The functions the learner calls there are
wrapped in the child process before it runs; what happens at the point is a signal to itself, or a wait for a file.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

PLACES = (
    "before plan",
    "after plan",
    "before read",
    "in read",
    "after read",
    "before train",
    "in train",
    "after train",
    "before commit",
    "in commit",
    "at the end of commit",
    "after commit",
)

_MODULES = (
    "torch._inductor.config",  # torch wants it when it is told to be deterministic
    "stream_cgzsl.bus.kafka",
    "stream_cgzsl.learners.episodic",
    "stream_cgzsl.learners.paper",
    "stream_cgzsl.workers.learner",
    "stream_cgzsl.workers.process",
)
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(list(_MODULES))  # a child then starts in an instant instead of importing torch


@dataclass(frozen=True)
class Point:
    """Where something happens to a learner, and what: it is killed, stopped, or waits until `gate` is gone."""

    place: str
    window: int
    action: str = "kill"
    gate: Path | None = None

    def happen(self) -> None:
        if self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            assert self.gate is not None
            self.gate.with_suffix(".reached").touch()
            while self.gate.exists():
                time.sleep(0.02)


def launch(
    arguments: list[str], log: Path, point: Point | None = None, patience: float | None = None
) -> BaseProcess:
    """A process that runs the command line with `arguments`, its output in `log`; `patience` is Kafka's, in seconds."""
    process = _context.Process(target=_run, args=(arguments, str(log), point, patience), daemon=True)
    process.start()
    return process


def _run(arguments: list[str], log: str, point: Point | None, patience: float | None) -> None:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    if patience is not None:
        _hurry(patience)
    if point is not None:
        _place(point)
    from stream_cgzsl.cli import main

    sys.exit(main(arguments))


def _hurry(seconds: float) -> None:
    """The Kafka client gives up sooner than it would, so that a test need not wait for it."""
    from stream_cgzsl.bus import kafka, kafka_errors, kafka_reading, kafka_settings, kafka_writing

    for module in (kafka, kafka_errors, kafka_reading, kafka_settings, kafka_writing):
        module.PATIENCE_SECONDS = seconds
        if hasattr(module, "_TIMEOUT_MS"):
            module._TIMEOUT_MS = int(seconds * 1000)


# ---- wrapping


def _place(point: Point) -> None:
    """Wraps what the learner calls at the point."""
    from stream_cgzsl.bus.kafka_writing import KafkaPublisher
    from stream_cgzsl.bus.sqlite_writing import SqlitePublisher
    from stream_cgzsl.lineage import Lineage
    from stream_cgzsl.windows.gather import Gatherer
    from stream_cgzsl.windows.planner import Planner
    from stream_cgzsl.workers import learner
    from stream_cgzsl.workers.telling import Watch

    inside = {"read": False, "train": False, "commit": False}

    def step(owner: Any, name: str, what: str, number: Callable[..., int]) -> None:
        """Before and after one call of a step, and whether we are in it."""
        original = getattr(owner, name)

        def wrapped(*given: Any, **named: Any) -> Any:
            here = number(*given, **named) == point.window
            if here and point.place == f"before {what}":
                point.happen()
            inside[what] = here
            result = original(*given, **named)
            inside[what] = False
            if here and point.place == f"after {what}" and result is not None:
                point.happen()
            return result

        setattr(owner, name, wrapped)

    def within(owner: Any, name: str, what: str, place: str, calls: int = 1, after: bool = True) -> None:
        """At the `calls`-th call of something while a step is under way."""
        original, left = getattr(owner, name), [calls]

        def wrapped(*given: Any, **named: Any) -> Any:
            counts = inside[what] and point.place == place
            if counts:
                left[0] -= 1
            if counts and left[0] == 0 and not after:
                point.happen()
            result = original(*given, **named)
            if counts and left[0] == 0 and after:
                point.happen()
            return result

        setattr(owner, name, wrapped)

    inside["plan"] = False
    step(Planner, "look", "plan", lambda _, last: int(last.number) + 1)
    step(Gatherer, "gather", "read", lambda _, number, *__: int(number))
    step(Lineage, "apply", "train", lambda _, __, gathered, *___: int(gathered.window.number))
    step(learner, "publish", "commit", lambda _, __, commit: int(commit.record.number))
    within(learner.LearnerWorker, "_alive", "read", "in read", calls=2)
    within(Watch, "cancelled", "train", "in train", calls=3)
    for publisher in (SqlitePublisher, KafkaPublisher):
        within(publisher, "flush", "commit", "in commit")
        within(publisher, "commit", "commit", "at the end of commit", after=False)
