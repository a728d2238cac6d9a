"""`run DATA`: feed, learn and evaluate a data set end to end, and write metrics and a report.

The folder --out gets run.db (the stream, unless there is a --bus), metrics.json, report.json and report.html. After an
interruption, the same command resumes the run, which ends with the same digests.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stream_cgzsl.cli.data_flags import SIZES, add_data, data_from, data_words, plan_from
from stream_cgzsl.cli.flags import LEARNING, STREAM, add, settings_from
from stream_cgzsl.errors import Interrupted

if TYPE_CHECKING:
    from stream_cgzsl.benchmark.datasets import Dataset
    from stream_cgzsl.benchmark.runs.request import RunRequest
    from stream_cgzsl.runtime.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)


def add_run(parser: argparse.ArgumentParser, *without: str) -> None:
    """Adds the flags of a run, except the settings `without`."""
    add_data(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of this run")
    names = (*STREAM, "shared", "seed", *LEARNING)
    add(parser, tuple(name for name in names if name not in ("dead_letter_limit", *without)))


def run(arguments: argparse.Namespace) -> None:
    from rich.console import Console

    from stream_cgzsl.benchmark.runs.folder import RunFolder
    from stream_cgzsl.benchmark.runs.run import run as run_through
    from stream_cgzsl.benchmark.runs.screen import Screen, summary

    request = request_from(arguments)
    folder = RunFolder(arguments.out)
    console = Console()
    with resumable(request.command(folder.path)), Screen(console) as screen:
        document = run_through(request, folder, screen)
    for line in (*summary(document), f"files               {folder.metrics}  {folder.report_html}"):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def resumable(command: str) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block cleanly; `Interrupted` then says how to resume."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; resume with: {command}") from None
    finally:
        signal.signal(signal.SIGTERM, before)


def prepare(arguments: argparse.Namespace) -> tuple[Settings, Dataset]:
    """The settings and the data set the flags ask for; sets up torch and logging as every worker does.

    Raises `UsageError`.
    """
    from stream_cgzsl.runtime.environment import prepare_torch
    from stream_cgzsl.workers.process import start_logging

    settings = settings_from(arguments)
    start_logging(settings.log_level if "log_level" in settings.model_fields_set else "warning")
    data = data_from(arguments)
    prepare_torch(settings.threads)
    return settings, data


def request_from(arguments: argparse.Namespace) -> RunRequest:
    """The request the flags make. Raises `UsageError`."""
    from stream_cgzsl.benchmark.runs.request import RunRequest

    settings, data = prepare(arguments)
    sizes = {name: getattr(arguments, name) for name in SIZES}
    return RunRequest(
        data,
        plan_from(arguments, data),
        settings,
        arguments.order_seed,
        settings.bus if "bus" in settings.model_fields_set else None,
        data_words(arguments),
        {name: size for name, size in sizes.items() if size is not None},
    )
