"""`rollback N`: make an earlier generation the newest one again. The learner does it, and writes it into the ledger."""

from __future__ import annotations

import argparse

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import STREAM, add, positive, settings_from, topics_from, words
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Rollback, encode


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("rollback", help="go back to an earlier generation", description=__doc__)
    parser.add_argument("generation", type=positive, help="its number")
    parser.add_argument("--reason", type=words, default="rollback", help="a word or two for the ledger")
    add(parser, STREAM)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.windows.ledger import read_last

    settings = settings_from(arguments)
    topics = topics_from(settings)
    with connect(settings.bus) as bus:
        topics.require(bus, ("control", "windows"))
        last, _ = read_last(bus, topics)
        newest = 0 if last is None else last.number
        if not 1 <= arguments.generation <= newest:
            raise UsageError(f"there is no generation {arguments.generation}: the ledger has 1 to {newest}")
        with bus.writer() as writer:
            writer.send(topics["control"], encode(Rollback(to=arguments.generation, reason=arguments.reason)))
            writer.flush()
    print(f"rollback to generation {arguments.generation} sent; the learner will publish it as a new generation")
