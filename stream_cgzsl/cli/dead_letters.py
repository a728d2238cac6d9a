"""`dead-letters show|redrive`: the records that could not be used, and sending them once more after mending."""

from __future__ import annotations

import argparse
from collections import Counter

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import STREAM, add, settings_from, topics_from


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("dead-letters", help="show or redrive unusable records", description=__doc__)
    parser.add_argument("action", choices=("show", "redrive"))
    parser.add_argument("--reason", action="append", default=[], help="only these, such as unknown-class")
    parser.add_argument("--last", type=int, default=20, help="show at most this many (default: 20)")
    add(parser, STREAM)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.windows.dead_letters import read, redrive

    settings = settings_from(arguments)
    topics = topics_from(settings)
    with connect(settings.bus) as bus:
        topics.require(bus, ("dead-letters",))
        found = list(read(bus, topics, arguments.reason))
        if arguments.action == "redrive":
            sent, skipped = redrive(bus, found)
            print(
                f"{sent} records sent again, {skipped} were larger than what is kept of them; close a window to learn them"
            )
            return
        for item in found[-arguments.last :]:
            print(f"{item.offset}: {item.letter.detail}")
        counts = Counter(item.letter.reason for item in found)
        print(f"{len(found)} dead letters" + "".join(f", {count} {reason}" for reason, count in counts.most_common()))
