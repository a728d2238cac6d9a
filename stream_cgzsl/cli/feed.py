"""`feed DATA`: send a data set to a stream, task by task. Stopped and started again, it goes on where it stopped."""

from __future__ import annotations

import argparse

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.data_flags import add_data, data_from
from stream_cgzsl.cli.flags import STREAM, add, positive, settings_from, topics_from


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("feed", help="send a data set to a stream, task by task", description=__doc__)
    add_data(parser)
    parser.add_argument("--rate", type=rate, metavar="R", help="records a second at most (default: as fast as can be)")
    parser.add_argument("--partitions", type=positive, default=4, help="of topics that are created (default: 4)")
    add(parser, STREAM)
    parser.set_defaults(run=run)


def rate(text: str) -> float:
    """`500` or `500/s`."""
    number = float(text.removesuffix("/s"))
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of records a second")
    return number


def run(arguments: argparse.Namespace) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from stream_cgzsl.benchmark.feeding import Feeder
    from stream_cgzsl.benchmark.pace import Pace

    settings = settings_from(arguments)
    data, plan = data_from(arguments)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with connect(settings.bus) as bus, Progress(*columns) as progress:
        shown = progress.add_task(data.name)
        feeder = Feeder(
            *(bus, topics_from(settings), data, plan, arguments.order_seed, Pace(arguments.rate)),
            told=lambda count: progress.advance(shown, count),
            partitions=arguments.partitions,
        )
        before = feeder.fed()
        left = feeder.tasks[before:]
        progress.update(shown, total=sum(map(feeder.count, left)))
        for task in left:
            progress.update(shown, description=f"{data.name} task {task.number}/{plan.tasks}")
            feeder.feed(task)
    print(f"{data.name}: {plan.tasks} {plan.setting} tasks are on {bus.url}, {len(left)} of them sent now")
