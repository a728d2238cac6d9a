"""`compact FILE`: remove from an SQLite bus what newer records have replaced: old generations and snapshots."""

from __future__ import annotations

import argparse
from pathlib import Path

from stream_cgzsl.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file, such as run.db; workers may be using it")


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.bus.sqlite.bus import SqliteBus
    from stream_cgzsl.bus.sqlite.compaction import compact

    path = Path(arguments.file.removeprefix("sqlite:///"))
    if not path.is_file():
        raise UsageError(f"{arguments.file}: there is no such file; Kafka compacts its topics by itself")
    before = path.stat().st_size
    with SqliteBus(f"sqlite:///{path}") as bus:
        removed = compact(bus)
    print(
        f"{path}: {removed:,} records removed, {before / 1e6:,.1f} MB before and {path.stat().st_size / 1e6:,.1f} now"
    )
