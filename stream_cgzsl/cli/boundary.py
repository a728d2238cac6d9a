"""`boundary`: end a task here; the learner closes its window at this point."""

from __future__ import annotations

import argparse

from stream_cgzsl.cli.flags import STREAM, add, open_stream, words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reason", type=words, default="boundary", help="a short text for the ledger (default: boundary)"
    )
    add(parser, STREAM)


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.windows.producer import send_boundary

    with open_stream(arguments, ("control", "attributes", "features", "holdout")) as (bus, topics):
        boundary = send_boundary(bus, topics, arguments.reason)
    cut = "  ".join(f"{role} {dict(ends)}" for role, ends in (boundary.cut or {}).items())
    print(f"boundary {boundary.reason!r} sent: {cut}")
