"""`dead-letters show|redrive`: the records that could not be used, and sending them once more after mending."""

from __future__ import annotations

import argparse
from collections import Counter, deque

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import STREAM, add, positive, settings_from, topics_from


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("dead-letters", help="show or redrive unusable records", description=__doc__)
    parser.add_argument("action", choices=("show", "redrive"))
    parser.add_argument("--reason", action="append", default=[], help="only these, such as unknown-class")
    parser.add_argument("--last", type=positive, default=20, help="show at most this many (default: 20)")
    add(parser, STREAM)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.windows.dead_letters import read, redrive

    settings = settings_from(arguments)
    topics = topics_from(settings)
    with connect(settings.bus) as bus:
        topics.require(bus, ("dead-letters",))
        found = read(bus, topics, arguments.reason)
        if arguments.action == "redrive":
            sent, skipped = redrive(bus, topics, found)
            print(
                f"{sent} records sent again, {skipped} were larger than what is kept of them; close a window to learn them"
            )
            return
        counts: Counter[str] = Counter()
        last: deque[str] = deque(maxlen=arguments.last)
        for item in found:
            counts[item.letter.reason] += 1
            last.append(f"{item.offset}: {item.letter.detail}")
    for line in last:
        print(line)
    told = "".join(f", {count} {reason}" for reason, count in counts.most_common())
    print(f"{counts.total()} dead letters{told}")
