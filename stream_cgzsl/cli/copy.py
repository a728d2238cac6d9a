"""`copy FROM TO`: copy a stream's topics to another bus with the same offsets, such as Kafka to one SQLite file."""

from __future__ import annotations

import argparse

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import add, settings_from, topics_from
from stream_cgzsl.cli.progress import progress
from stream_cgzsl.schemas import ROLES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FROM", help="the bus to read, such as kafka://host:9092")
    parser.add_argument("target", metavar="TO", help="the bus to write, such as sqlite:///run.db")
    add(parser, ("prefix", "topics", "log_level"))


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.bus.copy import copy
    from stream_cgzsl.windows.identity import refuse_changed_topics
    from stream_cgzsl.windows.recorded import Ledger

    topics = topics_from(settings_from(arguments))
    with connect(arguments.source) as source, connect(arguments.target) as target, progress() as show:
        there = source.topics()
        if topics["windows"] in there and (ledger := Ledger.open(source, topics)) is not None:
            refuse_changed_topics(source, topics, ledger)
        names = [topics[role] for role in ROLES if topics[role] in there]
        length = sum(sum(source.end_offsets(n).values()) - sum(source.begin_offsets(n).values()) for n in names)
        done = 0

        def report(_: str, offsets: int) -> None:
            nonlocal done
            done += offsets
            show("records", done, max(done, length))

        total = copy(source, target, topics, report=report)
    print(f"{total:,} records copied from {source.url} to {target.url}")
