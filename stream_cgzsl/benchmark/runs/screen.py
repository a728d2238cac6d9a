"""A run on the screen: a growing table with the time left; plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table

from stream_cgzsl.benchmark.runs.progress import TaskResult
from stream_cgzsl.benchmark.runs.request import RunRequest
from stream_cgzsl.benchmark.trickle import TRICKLE
from stream_cgzsl.report.document import Figures, RunDocument

_LOSSES = 3
"""How many loss terms a line has room for; the report has all of them."""


class Screen:
    """Shows any number of runs, one after the other. Use as a context manager."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
        self._title = ""
        self._rows: list[tuple[str, ...]] = []
        self._tasks = self._already = 0
        self._started = clock()

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            if self._rows:
                self._console.print(self._table())

    def run_started(self, request: RunRequest, learned: int) -> None:
        if self._live is not None and self._rows:
            self._console.print(self._table())  # of the previous run
        self._title = request.title
        self._rows, self._tasks, self._already, self._started = [], request.plan.tasks, learned, self._clock()
        if self._live is None:
            resumed = f", {learned} already learned" if learned else ""
            self._print(f"{self._title}, {self._tasks} tasks{resumed}")

    def progress(self, text: str) -> None:
        if self._live is not None:
            left = self._left()
            self._live.update(Group(self._table(), Spinner("dots", f"{text}{f', {left}' if left else ''}")))

    def task_done(self, result: TaskResult, seconds: float | None) -> None:
        record, accuracy = result.record, result.accuracy
        row = (
            f"{result.task.number}/{self._tasks}",
            f"{record.seen}+{record.unseen}",
            _percent(accuracy.seen),
            _percent(accuracy.unseen),
            _percent(accuracy.harmonic),
            "-" if seconds is None else f"{seconds:.2f} s",
            record.error or shown_losses(record.losses),
        )
        self._rows.append(row)
        if self._live is None:
            names = ("window", "classes", "seen", "unseen", "harmonic", "trained", "losses")
            figures = zip(names, row, strict=True)
            line = ", ".join(f"{name} {value}" for name, value in figures if value not in ("", "-"))
            left = self._left()
            self._print(f"{line}{f'; {left}' if left else ''}")

    def _left(self) -> str:
        """How long the rest will take, estimated from the tasks learned since this start."""
        done, left = len(self._rows) - self._already, self._tasks - len(self._rows)
        if done < 1 or not left:
            return ""
        return f"about {(self._clock() - self._started) / done * left:.0f} s left"

    def _table(self) -> Table:
        table = Table(
            title=self._title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
        )
        for name in ("window", "seen+\nunseen", "accuracy\nseen", "unseen", "harmonic", "trained"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("losses", no_wrap=True, overflow="ellipsis")
        for row in self._rows:
            table.add_row(*row)
        return table

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def shown_losses(losses: Mapping[str, float]) -> str:
    """The largest terms, by name."""
    largest = sorted(losses, key=lambda term: -abs(losses[term]))[:_LOSSES]
    return "  ".join(f"{term} {losses[term]:.3g}" for term in sorted(largest))


def summary(document: RunDocument) -> list[str]:
    """The results of a run in a few lines."""
    lines = [
        f"as of each window   mSA / mUA / mH  {shown_figures(document.as_of)}",
        f"recalculated        mSA / mUA / mH  {shown_figures(document.recalculated)}",
    ]
    if document.setting == "static":
        lines.append("                    recalculated mUA is not zero-shot: those classes have been learned since")
    if document.setting == TRICKLE:
        groups = "  ".join(f"{bucket}: {figure:.1f}" for bucket, figure in document.by_examples.items())
        lines.append(f"all classes         {_percent(document.overall)}; by number of examples  {groups}")
    if document.forgetting is not None:
        by_task = "" if document.task_forgetting is None else f"; by task {document.task_forgetting:.2f}"
        lines.append(f"forgetting          {document.forgetting:.2f} points{by_task}")
    if document.area is not None:
        lines.append(f"seen-unseen area    {document.area:.1f} %")
    lines.append(
        f"generation          {document.windows[-1].number} {document.windows[-1].digest[:12]}, "
        f"{document.seconds_training:.1f} s of training in {document.seconds_total:.1f} s"
    )
    return lines


def shown_figures(figures: Figures) -> str:
    return " / ".join("-" if figure is None else f"{figure:.1f}" for figure in (figures.mSA, figures.mUA, figures.mH))


def _percent(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.1f} %"
