"""`dead-letters show|redrive`: show the records that could not be used, or send them again after a fix."""

from __future__ import annotations

import argparse
from collections import Counter, deque

from stream_cgzsl.cli.flags import STREAM, add, open_stream, positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("show", "redrive"))
    parser.add_argument(
        "--reason",
        action="append",
        default=[],
        help="only letters with this reason, such as unknown-class; may be repeated",
    )
    parser.add_argument("--last", type=positive, default=20, help="show at most this many (default: 20)")
    add(parser, STREAM)


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.windows.dead_letters import read, redrive

    with open_stream(arguments, ("dead-letters",)) as (bus, topics):
        found = read(bus, topics, arguments.reason)
        if arguments.action == "redrive":
            sent, skipped = redrive(bus, topics, found)
            print(f"{sent} records sent again, {skipped} skipped: too large to keep; close a window to learn them")
            return
        counts: Counter[str] = Counter()
        last: deque[str] = deque(maxlen=arguments.last)
        for item in found:
            counts[item.letter.reason] += 1
            last.append(f"{item.offset}: {item.letter.detail}")
    for line in last:
        print(line)
    reasons = "".join(f", {count} {reason}" for reason, count in counts.most_common())
    print(f"{counts.total()} dead letters{reasons}")
