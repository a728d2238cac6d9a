"""How far a long command is, and how long still: one line on standard error, and nothing where that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Show = Callable[[str, int, int | None], None]
"""(what, done, of how many): called as often as anything is done. Another `what` begins another count."""


@contextmanager
def progress() -> Iterator[Show]:
    """The line is there while the block runs, and what the block prints goes above it."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True, highlight=False, markup=False)
    # What goes to a file or a pipe must arrive there
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as bars:
        bar = bars.add_task("", total=None)
        shown = ""

        def show(what: str, done: int, total: int | None) -> None:
            nonlocal shown
            if what != shown:
                shown = what
                bars.reset(bar, description=what, total=total)
            bars.update(bar, completed=done, total=total)

        yield show
