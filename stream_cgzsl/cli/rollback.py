"""`rollback N`: make an earlier generation the newest one again. The learner does it and records it in the ledger."""

from __future__ import annotations

import argparse

from stream_cgzsl.cli.flags import STREAM, add, open_stream, positive, words
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Rollback, encode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("generation", type=positive, help="its number")
    parser.add_argument(
        "--reason", type=words, default="rollback", help="a short text for the ledger (default: rollback)"
    )
    add(parser, STREAM)


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.windows.ledger import read_last

    with open_stream(arguments, ("control", "windows")) as (bus, topics):
        last, _ = read_last(bus, topics)
        newest = 0 if last is None else last.number
        if not 1 <= arguments.generation <= newest:
            raise UsageError(f"there is no generation {arguments.generation}: the ledger has 1 to {newest}")
        with bus.writer() as writer:
            writer.send(topics["control"], encode(Rollback(to=arguments.generation, reason=arguments.reason)))
            writer.flush()
    print(f"rollback to generation {arguments.generation} sent; the learner will publish it as a new generation")
