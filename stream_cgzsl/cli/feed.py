"""`feed DATA`: send a data set to a stream, task by task. Stopped and started again, it goes on where it stopped."""

from __future__ import annotations

import argparse
import signal
import sys

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.data_flags import add_data, data_from
from stream_cgzsl.cli.flags import STREAM, add, positive, settings_from, topics_from


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("feed", help="send a data set to a stream, task by task", description=__doc__)
    add_data(parser)
    parser.add_argument(
        "--rate", type=rate, metavar="R", help="records a second at most, such as 500/s (default: no limit)"
    )
    parser.add_argument("--partitions", type=positive, default=4, help="of topics that are missing (default: 4)")
    add(parser, STREAM)
    parser.set_defaults(run=run)


def rate(text: str) -> float:
    """`500` or `500/s`."""
    number = float(text.removesuffix("/s"))
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of records a second")
    return number


def run(arguments: argparse.Namespace) -> None:
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # both signals end it between two records
    try:
        feed(arguments)
    except KeyboardInterrupt:
        print("stream-cgzsl: the same command goes on where this one stopped", file=sys.stderr)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def feed(arguments: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from stream_cgzsl.benchmark.fed import genesis_of
    from stream_cgzsl.benchmark.feeding import Feeder
    from stream_cgzsl.benchmark.pace import Pace

    settings = settings_from(arguments)
    topics = topics_from(settings)
    data, plan = data_from(arguments)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(highlight=False, markup=False, soft_wrap=True)
    bar_of = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with connect(settings.bus) as bus, bar_of as progress:
        bar = progress.add_task("", total=None)
        feeder = Feeder(
            *(bus, topics, data, plan, arguments.order_seed, Pace(arguments.rate)),
            told=lambda count: progress.advance(bar, count),
            partitions=arguments.partitions,
        )
        fed = feeder.fed()
        if fed:
            console.print(f"{fed} of {plan.tasks} tasks are on {bus.url} already")
        for task in feeder.tasks[fed:]:
            count, name = feeder.count(task), f"task {task.number} of {plan.tasks}"
            progress.reset(bar, description=name, total=count)
            feeder.feed(task)
            line = (
                f"{name}: {len(task.described)} classes described, {len(task.learned)} with features, {count:,} records"
            )
            console.print(line)
        started = genesis_of(bus, topics) is not None
    if not started:
        space = data.space()
        sizes = f"--attributes {space.attributes} --features {space.features}{' --signed' if space.signed else ''}"
        print(f"to learn it: stream-cgzsl up --bus {bus.url} --prefix {settings.prefix} {sizes}")
