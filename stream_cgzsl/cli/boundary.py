"""`boundary`: say that a task ends here; the learner closes its window at this point."""

from __future__ import annotations

import argparse

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import STREAM, add, settings_from, topics_from, words


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("boundary", help="end a task: close the learner's window here", description=__doc__)
    parser.add_argument("--reason", type=words, default="boundary", help="a word or two for the ledger")
    add(parser, STREAM)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.windows.boundary import send_boundary

    settings = settings_from(arguments)
    topics = topics_from(settings)
    with connect(settings.bus) as bus:
        topics.require(bus, ("control", "attributes", "features", "holdout"))
        boundary = send_boundary(bus, topics, arguments.reason)
    cut = "  ".join(f"{role} {dict(ends)}" for role, ends in (boundary.cut or {}).items())
    print(f"boundary {boundary.reason!r} sent: {cut}")
