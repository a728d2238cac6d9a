"""`run DATA`: feed a data set, learn and evaluate it end to end, and write what came of it.

The folder of --out gets run.db (the stream, unless --bus says otherwise), metrics.json, report.json and report.html.
Stopped and started again with the same command, a run goes on where it stopped and ends with the same digests.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stream_cgzsl.cli.data_flags import add_data, data_from
from stream_cgzsl.cli.flags import LEARNING, STREAM, add, settings_from
from stream_cgzsl.errors import Interrupted

if TYPE_CHECKING:
    from stream_cgzsl.benchmark.run_request import RunRequest


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("run", help="feed, learn and evaluate a data set end to end", description=__doc__)
    add_run(parser)
    parser.set_defaults(run=run)


def add_run(parser: argparse.ArgumentParser, *without: str) -> None:
    """The flags of a run, but for the settings `without`."""
    add_data(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of this run")
    names = (*STREAM, "shared", "seed", *LEARNING)
    add(parser, tuple(name for name in names if name not in ("dead_letter_limit", *without)))


def run(arguments: argparse.Namespace) -> None:
    from rich.console import Console

    from stream_cgzsl.benchmark.run_folder import RunFolder
    from stream_cgzsl.benchmark.run_screen import Screen, summary
    from stream_cgzsl.benchmark.running import run as run_through

    request = request_from(arguments)
    folder = RunFolder(arguments.out)
    console = Console()
    with going_on(request.command(folder.path)), Screen(console) as screen:
        document = run_through(request, folder, screen)
    for line in (*summary(document), f"files               {folder.metrics}  {folder.report_html}"):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def going_on(command: str) -> Iterator[None]:
    """Ctrl-C and SIGTERM end what is inside cleanly, and `Interrupted` says how to go on."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; this goes on from here: {command}") from None
    finally:
        signal.signal(signal.SIGTERM, before)


def request_from(arguments: argparse.Namespace) -> RunRequest:
    """What the flags ask for; sets up torch and the log as every worker does. Raises `UsageError`."""
    from stream_cgzsl.benchmark.run_request import RunRequest
    from stream_cgzsl.environment import prepare
    from stream_cgzsl.workers.process import start_logging

    settings = settings_from(arguments)
    start_logging(settings.log_level if "log_level" in settings.model_fields_set else "warning")
    data, plan = data_from(arguments)
    prepare(settings.threads)
    files = {"--features": arguments.feature_file, "--splits": arguments.splits, "--data": arguments.data}
    sizes = {name: getattr(arguments, name) for name in ("tasks", "seen", "unseen")}
    return RunRequest(
        data,
        plan,
        settings,
        arguments.order_seed,
        settings.bus if "bus" in settings.model_fields_set else None,
        (arguments.dataset, *(word for flag, value in files.items() if value for word in (flag, value))),
        {name: size for name, size in sizes.items() if size is not None},
    )
