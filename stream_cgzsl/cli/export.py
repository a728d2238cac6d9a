"""`export FILE`: write a generation to a file, for `Projections.load(FILE)` where there is no bus."""

from __future__ import annotations

import argparse
from pathlib import Path

from stream_cgzsl.cli.flags import STREAM, add, open_stream
from stream_cgzsl.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="such as birds.safetensors")
    parser.add_argument("--generation", type=int, metavar="N", help="which one (default: the newest)")
    add(parser, STREAM)


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.serving import file as generation_file
    from stream_cgzsl.serving.generation_io import load_generation
    from stream_cgzsl.windows.ledger import Incomplete
    from stream_cgzsl.windows.recorded import Ledger

    with open_stream(arguments, ("windows", "projections")) as (bus, topics):
        ledger = Ledger.open(bus, topics)
        newest = 0 if ledger is None else ledger.last.number
        number = newest if arguments.generation is None else arguments.generation
        if ledger is None or not 1 <= number <= newest:
            raise UsageError(f"{bus.url}: there is no generation {number}; the ledger has 1 to {newest}")
        try:
            generation = load_generation(bus, topics, ledger.record(number))
        except Incomplete as reason:
            raise UsageError(
                f"{bus.url}: generation {number} is no longer complete ({reason}); try a newer one"
            ) from reason
    generation_file.write(generation, arguments.file)
    print(f"generation {number}, {len(generation.class_ids)} classes, {generation.digest[:12]}: {arguments.file}")
