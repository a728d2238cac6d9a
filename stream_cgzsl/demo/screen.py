"""What a person sees of the story: a table that grows, and a last page in plain words."""

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

from stream_cgzsl.bus.secrets import without_password
from stream_cgzsl.demo.story import Ending, Scene


class Screen:
    """An audience with eyes. Use as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._scenes: list[Scene] = []
        self._live = Live(console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        if self._scenes:
            self._console.print(self._table())

    def doing(self, text: str) -> None:
        self._live.update(Group(self._table(), Spinner("dots", text)))

    def saw(self, scene: Scene) -> None:
        self._scenes.append(scene)
        self._live.update(self._table())

    def _table(self) -> Table:
        table = Table(
            title="A stream that learns",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        table.add_column("on the stream", no_wrap=True)
        table.add_column("generation", no_wrap=True)
        table.add_column("seen+\nunseen", justify="right")
        table.add_column("served\nafter", justify="right", no_wrap=True)
        table.add_column("right:\nlearned", justify="right")
        table.add_column("described\nonly", justify="right")
        table.add_column("first\ntwelve", justify="right")
        for scene in self._scenes:
            record = scene.record
            table.add_row(
                scene.title,
                f"{record.number} {(record.generation or '')[:7]}",
                f"{record.seen}+{record.unseen}",
                f"{scene.seconds:.1f} s",
                _percent(scene.learned),
                _percent(scene.described),
                _percent(scene.first),
            )
        return table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def last_page(ending: Ending) -> Panel:
    """What happened, in plain words."""
    start, end = ending.scenes[1], ending.scenes[-1]
    classes = start.record.seen + start.record.unseen
    text = f"""\
Six classes that never had an example were recognised from their descriptions alone, {_percent(start.described)} of the \
time among {classes} classes (guessing: {100 / classes:.0f} %).
[italic]{ending.newcomer.replace("-", " ")}[/italic] was described while the stream was idle; {ending.newcomer_seconds:.1f} \
seconds later it was being recognised, {_percent(ending.newcomer_right)} of the time.
[italic]{ending.turned.replace("-", " ")}[/italic] went from described to learned: {_percent(ending.turned_before)} right \
before its first example, {_percent(ending.turned_after)} after.
Nothing was forgotten: the first 12 classes were right {_percent(start.first)} of the time when just learned, and \
{_percent(end.first)} two tasks later, although no example of them was kept.
{ending.dead} broken record went to dead-letters with its reason. {ending.answers:,} samples were answered."""
    return Panel(text, title="What you saw", title_align="left", border_style="green")


def next_steps(url: str, prefix: str, directory: Path) -> str:
    """What to try next; every line a command can be copied from."""
    where = f"--bus {without_password(url)} --prefix {prefix}"
    program = "stream-cgzsl" if shutil.which("stream-cgzsl") else sys.argv[0]
    return f"""\
[bold]What to try next[/bold]
  its topics             {program} topics show {where}
  let it go on           {program} up {where}
  the same on Kafka      {program} broker start && {program} demo --bus kafka://localhost:9092
  your own events        docs/events.md
  the workers' logs      {directory}"""
