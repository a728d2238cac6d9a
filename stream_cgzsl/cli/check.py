"""`check`: check that the ledger, the topics and the published generations of a stream agree."""

from __future__ import annotations

import argparse

from stream_cgzsl.cli.flags import STREAM, add, open_stream
from stream_cgzsl.cli.progress import progress
from stream_cgzsl.errors import BrokenLedger


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, STREAM)


def run(arguments: argparse.Namespace) -> int:
    from stream_cgzsl.history.check import check

    with (
        open_stream(
            arguments, ("attributes", "features", "control", "windows", "projections", "state", "dead-letters")
        ) as (bus, topics),
        progress() as show,
    ):
        found = check(bus, topics, report=show)
    for problem in found.problems:
        print(f"stream-cgzsl: {problem}")
    print(
        f"{found.windows} windows, {found.records:,} records: {found.accepted:,} accepted, "
        f"{found.duplicate:,} duplicate, {found.dead:,} dead, {found.lost:,} lost; {found.waiting:,} waiting, "
        f"{found.expired:,} expired since; "
        f"{found.generations} generations complete, {found.replaced} replaced; {len(found.problems)} problems"
    )
    return BrokenLedger.exit_code if found.problems else 0
