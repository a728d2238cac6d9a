"""Starts worker processes to which something happens at a chosen point. No code of the product is made for this.

A point is a place before, in or after a numbered step, in a given window. The functions the learner calls there are
wrapped in the child process before it runs; what happens is a signal to itself, a wait for a file, or an error.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

PLACES = (
    "before plan",
    "after plan",
    "in read",
    "after read",
    "in train",
    "after train",
    "in commit",
    "at the end of commit",
    "after commit",
)
"""Before, in and after each step. After one step is before the next."""

Hook = Callable[[], None]
"""Runs in the child before its command does. Must be picklable."""

_MODULES = (
    "torch._inductor.config",  # torch imports it for deterministic algorithms
    "stream_cgzsl.bus.kafka.bus",
    "stream_cgzsl.learners.kernel.episodic",
    "stream_cgzsl.learners.gan.paper",
    "stream_cgzsl.workers.learner",
    "stream_cgzsl.workers.process",
)
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(list(_MODULES))  # children then start without importing torch


def launch(arguments: Sequence[str], log: Path, hooks: Sequence[Hook] = ()) -> BaseProcess:
    """A process that runs the command line with `arguments`, its output in `log`."""
    process = _context.Process(target=_run, args=(list(arguments), str(log), list(hooks)), daemon=True)
    process.start()
    return process


def _run(arguments: list[str], log: str, hooks: list[Hook]) -> None:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    for hook in hooks:
        hook()
    from stream_cgzsl.cli import main

    sys.exit(main(arguments))


class Environment:
    """Variables for the child."""

    def __init__(self, **variables: str) -> None:
        self._variables = variables

    def __call__(self) -> None:
        os.environ.update(self._variables)


@dataclass(frozen=True)
class RandomPolls:
    """Readers return one to seven records at a time, whatever they are asked for."""

    seed: int

    def __call__(self) -> None:
        from stream_cgzsl.bus.kafka.reading import KafkaReader
        from stream_cgzsl.bus.sqlite.reading import SqliteReader

        dice = random.Random(self.seed)
        for reader in (KafkaReader, SqliteReader):
            reader.poll = _fewer(reader.poll, dice)


def _fewer(poll: Callable[..., Any], dice: random.Random) -> Callable[..., Any]:
    return lambda self, timeout, max_records=7: poll(self, timeout, min(max_records, dice.randint(1, 7)))


@dataclass(frozen=True)
class Point:
    """Where something happens to a learner, and what.

    The action is `kill` (SIGKILL), `stop` (SIGSTOP), `wait` until the file `gate` is removed, or `memory`, which raises
    a `MemoryError`, `times` times.
    """

    place: str
    window: int
    action: str = "kill"
    gate: Path | None = None
    times: int = 1

    def happen(self) -> None:
        if self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.action == "memory":
            raise MemoryError("out of memory")
        else:
            assert self.gate is not None
            self.gate.with_suffix(".reached").touch()
            while self.gate.exists():
                time.sleep(0.02)

    def __call__(self) -> None:
        """Wraps the functions that the learner calls in each step."""
        from stream_cgzsl.bus.kafka.writing import KafkaPublisher
        from stream_cgzsl.bus.sqlite.writing import SqlitePublisher
        from stream_cgzsl.history.stream_learner import StreamLearner
        from stream_cgzsl.windows.gather import Gatherer
        from stream_cgzsl.windows.planner import Planner
        from stream_cgzsl.workers import learner
        from stream_cgzsl.workers.learner_reporting import TrainingMonitor

        step = _Step(self)
        step.wrap(Planner, "look", "plan", lambda _, last: int(last.number) + 1)
        step.wrap(Gatherer, "gather", "read", lambda _, number, *__: int(number))
        step.wrap(StreamLearner, "learn", "train", lambda _, __, gathered, *___: int(gathered.window.number))
        step.wrap(learner, "publish_window", "commit", lambda _, __, record, *___: int(record.number))
        step.wrap_within(learner.LearnerWorker, "_alive", "in read", calls=2)
        step.wrap_within(TrainingMonitor, "cancelled", "in train", calls=3)
        for publisher in (SqlitePublisher, KafkaPublisher):
            step.wrap_within(publisher, "flush", "in commit")
            step.wrap_within(publisher, "commit", "at the end of commit")


class _Step:
    """Which step of the point's window the learner is in."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self._now = ""

    def wrap(self, owner: Any, name: str, what: str, number: Callable[..., int]) -> None:
        """Wraps a function that is a step: the point may be before or after it."""
        original, point = getattr(owner, name), self._point

        def wrapped(*given: Any, **named: Any) -> Any:
            if number(*given) != point.window:
                return original(*given, **named)
            if point.place == f"before {what}":
                point.happen()
            self._now = what
            try:
                result = original(*given, **named)
            finally:
                self._now = ""
            if point.place == f"after {what}" and result is not None:
                point.happen()
            return result

        setattr(owner, name, wrapped)

    def wrap_within(self, owner: Any, name: str, place: str, calls: int = 1) -> None:
        """Wraps a function called within a step: the point is before every `calls`-th call, up to `times` times."""
        original, point = getattr(owner, name), self._point
        count = happened = 0

        def wrapped(*given: Any, **named: Any) -> Any:
            nonlocal count, happened
            if self._now == place.split()[-1] and point.place == place and happened < point.times:
                count += 1
                if count % calls == 0:
                    happened += 1
                    point.happen()
            return original(*given, **named)

        setattr(owner, name, wrapped)
