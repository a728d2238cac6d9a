"""`check`: do the ledger, the topics and the published generations of a stream agree?"""

from __future__ import annotations

import argparse

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import STREAM, add, settings_from, topics_from
from stream_cgzsl.errors import BrokenLedger


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("check", help="check that a stream's records add up", description=__doc__)
    add(parser, STREAM)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from stream_cgzsl.windows.check import check

    settings = settings_from(arguments)
    topics = topics_from(settings)
    with connect(settings.bus) as bus:
        topics.require(bus, ("attributes", "features", "control", "windows", "projections", "state", "dead-letters"))
        found = check(bus, topics)
    for problem in found.problems:
        print(f"stream-cgzsl: {problem}")
    print(
        f"{found.windows} windows, {found.records:,} records: {found.accepted:,} accepted, {found.duplicate:,} duplicate, "
        f"{found.dead:,} dead, {found.lost:,} lost; {found.waiting:,} wait, {found.expired:,} have expired since; "
        f"{found.generations} generations whole, {found.replaced} replaced; {len(found.problems)} problems"
    )
    return BrokenLedger.exit_code if found.problems else 0
