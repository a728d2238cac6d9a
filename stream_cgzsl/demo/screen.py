"""The demo on the screen: a growing table, a summary, and what to try next."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table

from stream_cgzsl.demo.scenario import DemoResult, Step
from stream_cgzsl.runtime.secrets import without_password


class Screen:
    """Shows the steps of the demo as they are done. Use as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._steps: list[Step] = []
        self._live = Live(console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        if self._steps:
            self._console.print(self._table())

    def progress(self, text: str) -> None:
        self._live.update(Group(self._table(), Spinner("dots", text)))

    def step_done(self, step: Step) -> None:
        self._steps.append(step)
        self._live.update(self._table())

    def _table(self) -> Table:
        table = Table(
            title="A stream that learns",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        table.add_column("what was sent", no_wrap=True)
        table.add_column("generation", no_wrap=True)
        table.add_column("seen+\nunseen", justify="right")
        table.add_column("served\nafter", justify="right", no_wrap=True)
        table.add_column("accuracy\nseen", justify="right")
        table.add_column("unseen", justify="right")
        table.add_column("first\n12", justify="right")
        for step in self._steps:
            record = step.record
            table.add_row(
                step.title,
                f"{record.number} {(record.generation or '')[:7]}",
                f"{record.seen}+{record.unseen}",
                f"{step.seconds:.1f} s",
                _percent(step.seen),
                _percent(step.unseen),
                _percent(step.first),
            )
        return table


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.0f} %"


def summary(result: DemoResult) -> Panel:
    """What happened, in plain words."""
    start, end = result.steps[1], result.steps[-1]
    classes = start.record.seen + start.record.unseen
    text = f"""\
Six classes without a single example were recognised by their descriptions: {_percent(start.unseen)} accuracy among \
{classes} classes (chance: {100 / classes:.0f} %).
[italic]{result.newcomer.replace("-", " ")}[/italic] was described while the stream was idle and served \
{result.newcomer_seconds:.1f} seconds later: {_percent(result.newcomer_accuracy)} accuracy.
Every example helps: {len(result.converted)} classes had {_percent(result.converted_described)} accuracy from their \
descriptions, {_percent(result.converted_one)} with one example each, {_percent(result.converted_many)} with forty more.
Nothing was forgotten, although the learner keeps no example: {_percent(start.first)} accuracy on the first 12 classes \
when they were learned, {_percent(end.first)} two tasks later.
{result.dead_letters} broken record went to the dead-letter queue. {result.answers:,} samples were answered."""
    return Panel(text, title="What you saw", title_align="left", border_style="green")


def next_steps(url: str, prefix: str, directory: Path) -> str:
    """What to try next: commands to copy, and where to read on."""
    where = f"--bus {without_password(url)} --prefix {prefix}"
    program = "stream-cgzsl" if shutil.which("stream-cgzsl") else sys.argv[0]
    return f"""\
[bold]What to try next[/bold]
  show its topics        {program} topics show {where}
  keep it running        {program} up {where}
  the same on Kafka      {program} broker start && {program} demo --bus kafka://localhost:9092
  send your own events   docs/events.md
  the workers' logs      {directory}"""
