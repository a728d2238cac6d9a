"""A stream whose learner processes are killed, stopped and restarted: its tasks, its learners and its ledger."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
from helpers import CLASSES, Producer, description, examples, read, recorded, wait_for_window
from launcher import Hook, Point, launch
from patience import PATIENCE_SECONDS

from stream_cgzsl.bus import Bus, Record, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.cli import main
from stream_cgzsl.history.check import Findings, check
from stream_cgzsl.history.replay import Verdict, verify
from stream_cgzsl.runtime.environment import prepare_torch
from stream_cgzsl.schemas import Boundary, Feature, LedgerRecord, Message, encode
from stream_cgzsl.schemas.roles import ROLES
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.offsets import DATA_ROLES

SESSION_SECONDS = (
    6.0 if os.environ.get("CGZSL_TEST_KAFKA") else 2.0
)  # a broker that we did not start has its own limits
A, B, C, D, E = CLASSES[:5]
LEARNER = {"attributes": 8, "features": 16, "learner": "episodic", "quiet-seconds": 600}

TASKS = (1, 2, 3)

Result = tuple[int, str, str, str | None, str | None]
"""Number, kind, reason, inputs and generation of a window."""


@dataclass
class Stream:
    """One stream on a bus of either kind. Topics have names that no other test uses."""

    url: str
    directory: Path
    bus: Bus
    topics: Topics
    starts: int = field(default=0)

    @property
    def producer(self) -> Producer:
        return Producer(self.bus, self.topics)

    # ---- the learner, and other commands

    def arguments(self, **settings: Any) -> list[str]:
        """The command line of this stream's learner, without the program."""
        flags = LEARNER | {name.replace("_", "-"): value for name, value in settings.items()}
        given = [f"--{name}" if value is True else f"--{name}={value}" for name, value in flags.items()]
        return ["learn", f"--bus={self.url}", f"--prefix={self.topics.prefix}", *given]

    @contextmanager
    def learner(self, *hooks: Hook, **settings: Any) -> Iterator[Child]:
        """A learner process; it is killed at the end if it is still running."""
        self.starts += 1
        log = self.directory / f"learner-{self.starts}.log"
        child = Child(launch(self.arguments(**settings), log, hooks), log)
        try:
            yield child
        finally:
            child.kill()

    def learn_until(self, number: int, *hooks: Hook, **settings: Any) -> str:
        """Runs a learner until window `number` is committed, then stops it. Returns its log."""
        with self.learner(*hooks, **settings) as learner:
            learner.wait_for_log("waiting for events")
            self.wait_for(number, learner)
            return learner.end()

    def learn_to_its_end(self, code: int, *hooks: Hook, **settings: Any) -> str:
        """Runs a learner until it ends by itself, with this exit code. Returns its log."""
        with self.learner(*hooks, **settings) as learner:
            return learner.wait(code)

    def run(self, command: str, *arguments: str, bus: bool = True) -> tuple[int, str]:
        """Runs another command on this stream, in this process. Returns its exit code and its output."""
        output = StringIO()
        flags = [f"--prefix={self.topics.prefix}", *([f"--bus={self.url}"] if bus else [])]
        with redirect_stdout(output), redirect_stderr(output):
            code = main([command, *arguments, *flags])
        return code, output.getvalue()

    def crash(self, place: str, window: int, **settings: Any) -> None:
        """Runs a learner that is killed at a point."""
        self.learn_to_its_end(-signal.SIGKILL, Point(place, window), **settings)

    # ---- results

    def ledger(self) -> list[LedgerRecord]:
        return ledger.read_all(self.bus, self.topics)

    def results(self) -> list[Result]:
        return [(r.number, r.kind, r.reason, r.inputs, r.generation) for r in self.ledger()[1:]]

    def wait_for(self, number: int, *learners: Child) -> LedgerRecord:
        """The record of a window, as soon as it is committed."""

        def alive() -> None:
            for learner in learners:
                learner.alive()

        return wait_for_window(self.bus, number, self.topics, alive)

    def everything(self) -> dict[str, list[Record]]:
        """Every record of every topic."""
        return {role: read(self.bus, self.topics[role]) for role in ROLES}

    def check(self) -> Findings:
        return check(self.bus, self.topics)

    def verdicts(self) -> list[Verdict]:
        prepare_torch(1)
        return [replayed.verdict for replayed in verify(self.bus, self.topics, recorded(self.bus, self.topics), "cpu")]

    def assert_sound(self, windows: int) -> None:
        """The ledger has so many windows, it adds up, and a replay gives the same bytes."""
        found = self.check()
        assert (found.windows, found.problems) == (windows, [])
        assert self.verdicts() == [Verdict.IDENTICAL] * windows

    def assert_sound_from(self, window: int) -> None:
        """The same where the records of earlier windows have expired."""
        verdicts = self.verdicts()
        assert self.check().problems == []
        assert verdicts[window - 1 :] == [Verdict.IDENTICAL] * (len(verdicts) - window + 1)

    # ---- inputs

    def send_tasks(self, *tasks: int) -> None:
        """Sends tasks, each with its boundary: descriptions, examples, duplicates and an invalid record."""
        with self.bus.writer() as writer:
            for number in tasks or TASKS:
                for role, messages in task_events(number).items():
                    for message in messages:
                        writer.send(self.topics[role], message)
                    writer.flush()
                cut = {role: self.bus.end_offsets(self.topics[role]) for role in DATA_ROLES}
                writer.send(self.topics["control"], encode(Boundary(reason=f"task {number}", cut=cut)))
            writer.flush()


def task_events(number: int) -> dict[str, list[Message]]:
    """The messages of a task, by role."""
    descriptions: dict[int, tuple[str, ...]] = {1: (A, B, C), 2: (D,)}
    features = {
        1: examples((A, B), 12),
        2: [*examples((C,), 12), *examples((A,), 12)[:5]],  # the last five are duplicates
    }.get(number, [*examples((D,), 12), *examples((A, B), 12, purpose=number)])
    without_id = [Feature(class_id=A, vector=np.full(16, 0.5 + n, np.float32)) for n in range(3 if number > 2 else 0)]
    invalid = [Message(A.encode(), b"123")] if number == 2 else []
    return {
        "attributes": [encode(description(c)) for c in descriptions.get(number, ())],
        "features": [*map(encode, (*features, *without_id)), *invalid],
    }


@dataclass
class Child:
    process: BaseProcess
    path: Path

    def log(self) -> str:
        return self.path.read_text() if self.path.exists() else ""

    def alive(self) -> bool:
        """False, so that it can be the end of a condition; fails if the process has ended."""
        assert self.process.is_alive(), f"exit code {self.process.exitcode}: {self.log()}"
        return False

    def wait(self, code: int, seconds: float = PATIENCE_SECONDS) -> str:
        """Waits until the process ends by itself, with this exit code. Returns its log."""
        self.process.join(seconds)
        assert self.process.exitcode == code, f"exit code {self.process.exitcode}: {self.log()}"
        return self.log()

    def wait_for_log(self, text: str) -> None:
        """Waits until the log contains the text; the process must not end before."""
        self.wait_until(lambda log: text in log or self.alive())

    def wait_until(self, condition: Callable[[str], bool]) -> None:
        """Waits until the condition holds for the log."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition(self.log()):
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def wait_until_stopped(self) -> None:
        """Waits until a SIGSTOP has stopped the process."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        self.wait_until(lambda _: stat.read_text().rpartition(")")[2].split()[0] == "T")

    def signal(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def end(self) -> str:
        """Stops it with SIGTERM."""
        self.signal(signal.SIGTERM)
        return self.wait(0)

    def kill(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


@contextmanager
def new_stream(
    url: str, directory: Path, partitions: int = 2, session_seconds: float = SESSION_SECONDS
) -> Iterator[Stream]:
    """A stream with empty topics on the bus at `url`, with short sessions."""
    topics = Topics(f"g{uuid.uuid4().hex[:10]}")
    url = f"{url}{'&' if '?' in url else '?'}session_timeout_ms={int(session_seconds * 1000)}"
    with connect(url) as bus:
        bus.create(topics.specs(partitions))
        yield Stream(url, directory, bus, topics)
