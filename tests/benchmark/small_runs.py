"""Small runs to test with: a made-up world of a few classes, and somebody who watches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stream_cgzsl.benchmark.datasets import load
from stream_cgzsl.benchmark.run_folder import RunFolder
from stream_cgzsl.benchmark.run_record import Learned
from stream_cgzsl.benchmark.run_request import RunRequest
from stream_cgzsl.benchmark.running import run
from stream_cgzsl.benchmark.settings import plan_for
from stream_cgzsl.report.document import RunDocument
from stream_cgzsl.settings import Settings

DATA = "synthetic:classes=16,unseen=4,attributes=8,features=16,rows=12,test=6"
TASKS = 4
QUICK = {"adversarial": {"hidden": 16, "max_iterations": 8}}


def asked(
    data: str = DATA, setting: str = "online", bus: str | None = None, order: int | None = None, **settings: Any
) -> RunRequest:
    """A run of four tasks with the quickest learner, unless told otherwise."""
    found = load(data)
    values = {"learner": "closed-form", **settings}
    values.setdefault("options", QUICK.get(values["learner"], {}))
    return RunRequest(found, plan_for(found, setting, TASKS), Settings(**values), order, bus, (data,), {"tasks": TASKS})


class Watcher:
    """Remembers what it saw; loses patience when it is told of what `ends` says."""

    def __init__(self, ends: str = "") -> None:
        self.seen: list[int] = []
        self.begun: list[int] = []
        self._ends = ends

    def begins(self, request: RunRequest, learned: int) -> None:  # noqa: ARG002
        self.begun.append(learned)

    def doing(self, text: str) -> None:
        if text == self._ends:
            raise KeyboardInterrupt

    def learned(self, window: Learned, seconds: float | None) -> None:  # noqa: ARG002
        self.seen.append(window.task.number)
        self.doing(f"learned {window.task.number}")


def done(path: Path, request: RunRequest | None = None) -> RunDocument:
    """A whole run in that folder."""
    return run(request or asked(), RunFolder(path), Watcher())


def digests(document: RunDocument) -> list[str]:
    return [window.digest for window in document.windows]
