"""Small runs to test with: a few synthetic classes, and an observer that remembers or interrupts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stream_cgzsl.benchmark.datasets import load
from stream_cgzsl.benchmark.protocols import plan_for
from stream_cgzsl.benchmark.runs.folder import RunFolder
from stream_cgzsl.benchmark.runs.progress import TaskResult
from stream_cgzsl.benchmark.runs.request import RunRequest
from stream_cgzsl.benchmark.runs.run import run
from stream_cgzsl.report.document import RunDocument
from stream_cgzsl.runtime.settings import Settings

DATA = "synthetic:classes=16,unseen=4,attributes=8,features=16,rows=12,test=6"
TASKS = 4
QUICK = {"adversarial": {"hidden": 16, "max_iterations": 8}}


def asked(
    data: str = DATA, setting: str = "online", bus: str | None = None, order: int | None = None, **settings: Any
) -> RunRequest:
    """A request for four tasks with the quickest learner, unless given otherwise."""
    found = load(data)
    values = {"learner": "closed-form", **settings}
    values.setdefault("options", QUICK.get(values["learner"], {}))
    return RunRequest(found, plan_for(found, setting, TASKS), Settings(**values), order, bus, (data,), {"tasks": TASKS})


class Watcher:
    """An observer that remembers; it interrupts the run when its progress is `interrupt_at`."""

    def __init__(self, interrupt_at: str = "") -> None:
        self.done: list[int] = []
        self.started: list[int] = []
        self._interrupt_at = interrupt_at

    def run_started(self, request: RunRequest, learned: int) -> None:  # noqa: ARG002
        self.started.append(learned)

    def progress(self, text: str) -> None:
        if text == self._interrupt_at:
            raise KeyboardInterrupt

    def task_done(self, result: TaskResult, seconds: float | None) -> None:  # noqa: ARG002
        self.done.append(result.task.number)
        self.progress(f"learned {result.task.number}")


def done(path: Path, request: RunRequest | None = None) -> RunDocument:
    """A complete run in that folder."""
    return run(request or asked(), RunFolder(path), Watcher())


def digests(document: RunDocument) -> list[str]:
    return [window.digest for window in document.windows]
