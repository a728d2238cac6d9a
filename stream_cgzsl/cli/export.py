"""`export FILE`: a generation in a file of its own, for `Projections.load(FILE)` where there is no bus."""

from __future__ import annotations

import argparse
from pathlib import Path

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import STREAM, add, settings_from, topics_from
from stream_cgzsl.errors import UsageError


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("export", help="write a generation to a file", description=__doc__)
    parser.add_argument("file", type=Path, help="such as birds.safetensors")
    parser.add_argument("--generation", type=int, metavar="N", help="which one (default: the newest)")
    add(parser, STREAM)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl import generation_file
    from stream_cgzsl.windows.ledger import Incomplete, load_generation, read_all

    settings = settings_from(arguments)
    topics = topics_from(settings)
    with connect(settings.bus) as bus:
        topics.require(bus, ("windows", "projections"))
        records = read_all(bus, topics)
        number = len(records) - 1 if arguments.generation is None else arguments.generation
        if not 1 <= number < len(records):
            raise UsageError(f"{bus.url}: there is no generation {number}; the ledger has 1 to {len(records) - 1}")
        try:
            generation = load_generation(bus, topics, records[number])
        except Incomplete as reason:
            raise UsageError(
                f"{bus.url}: generation {number} can no longer be had ({reason}); try a newer one"
            ) from reason
    generation_file.write(generation, arguments.file)
    print(f"generation {number}, {len(generation.class_ids)} classes, {generation.digest[:12]}: {arguments.file}")
