"""`feed DATA`: send a data set to a stream, task by task. Started again after an interruption, it resumes."""

from __future__ import annotations

import argparse
import signal
import sys

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.data_flags import add_data, data_from, plan_from
from stream_cgzsl.cli.flags import STREAM, add, positive, settings_from, topics_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data(parser)
    parser.add_argument(
        "--rate", type=rate, metavar="R", help="at most this many records per second, such as 500/s (default: no limit)"
    )
    parser.add_argument(
        "--partitions", type=positive, default=4, help="partitions of topics that are created (default: 4)"
    )
    add(parser, STREAM)


def rate(text: str) -> float:
    """`500` or `500/s`."""
    number = float(text.removesuffix("/s"))
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of records per second")
    return number


def run(arguments: argparse.Namespace) -> None:
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # both signals stop it between two records
    try:
        feed(arguments)
    except KeyboardInterrupt:
        print("stream-cgzsl: run the same command again to resume", file=sys.stderr)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def feed(arguments: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from stream_cgzsl.benchmark.feed_state import read_genesis
    from stream_cgzsl.benchmark.feeding import Feeder
    from stream_cgzsl.benchmark.pace import Pace

    settings = settings_from(arguments)
    topics = topics_from(settings)
    data = data_from(arguments)
    plan = plan_from(arguments, data)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(highlight=False, markup=False, soft_wrap=True)
    bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with connect(settings.bus) as bus, bars as progress:
        bar = progress.add_task("", total=None)
        feeder = Feeder(
            *(bus, topics, data, plan, arguments.order_seed, Pace(arguments.rate)),
            sent=lambda count: progress.advance(bar, count),
            partitions=arguments.partitions,
        )
        fed = feeder.fed()
        if fed:
            console.print(f"{fed} of {plan.tasks} tasks are already on {bus.url}")
        for task in feeder.tasks[fed:]:
            count, name = feeder.count(task), f"task {task.number} of {plan.tasks}"
            progress.reset(bar, description=name, total=count)
            feeder.feed(task)
            classes = f"{len(task.described)} classes described, {len(task.learned)} with examples"
            console.print(f"{name}: {classes}, {count:,} records")
        started = read_genesis(bus, topics) is not None
    if not started:
        space = data.space()
        sizes = f"--attributes {space.attributes} --features {space.features}{' --signed' if space.signed else ''}"
        print(f"to learn it: stream-cgzsl up --bus {bus.url} --prefix {settings.prefix} {sizes}")
