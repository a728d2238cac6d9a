"""`copy FROM TO`: copy a stream's topics to another bus with the same offsets, such as Kafka to one SQLite file."""

from __future__ import annotations

import argparse

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import add, settings_from, topics_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FROM", help="the bus to read, such as kafka://host:9092")
    parser.add_argument("target", metavar="TO", help="the bus to write, such as sqlite:///run.db")
    add(parser, ("prefix", "topics", "log_level"))


def run(arguments: argparse.Namespace) -> None:
    from rich.progress import Progress, SpinnerColumn, TextColumn

    from stream_cgzsl.bus.copy import copy
    from stream_cgzsl.windows.identity import refuse_changed_topics
    from stream_cgzsl.windows.recorded import Ledger

    settings = settings_from(arguments)
    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:,.0f} records"))
    with connect(arguments.source) as source, connect(arguments.target) as target, Progress(*columns) as progress:
        topics = topics_from(settings)
        if topics["windows"] in source.topics() and (ledger := Ledger.open(source, topics)) is not None:
            refuse_changed_topics(source, topics, ledger)
        task = progress.add_task("copying", total=None)

        def report(topic: str, records: int) -> None:
            progress.update(task, description=topic, advance=records)

        total = copy(source, target, topics, report=report)
    print(f"{total:,} records copied from {source.url} to {target.url}")
