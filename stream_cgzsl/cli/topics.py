"""`topics show|create|check`: the topics of a stream."""

from __future__ import annotations

import argparse

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import STREAM, add, positive, settings_from, topics_from
from stream_cgzsl.errors import TopicMissing
from stream_cgzsl.schemas import ROLES


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("topics", help="show, create or check the topics", description=__doc__)
    parser.add_argument("action", choices=("show", "create", "check"))
    parser.add_argument(
        "--partitions", type=positive, default=4, help="of the topics that may have several (default: 4)"
    )
    add(parser, STREAM)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_from(arguments)
    topics = topics_from(settings)
    with connect(settings.bus) as bus:
        if arguments.action == "create":
            before = bus.topics()
            bus.create(topics.specs(arguments.partitions))
            made = [spec.name for spec in topics.specs() if spec.name not in before]
            print(f"{bus.url}: created {', '.join(made) or 'nothing, all topics exist'}")
        elif arguments.action == "show":
            there = bus.topics()
            for role in ROLES.values():
                spec = there.get(topics[role.name])
                if spec is None:
                    print(f"{topics[role.name]:32} missing")
                    continue
                count = sum(bus.end_offsets(spec.name).values()) - sum(bus.begin_offsets(spec.name).values())
                print(
                    f"{spec.name:32} {spec.partitions:3} partitions  {spec.cleanup:8} {count:12,} records  {role.purpose}"
                )
        problems = topics.problems(bus)
        if arguments.action != "show":
            for problem in problems:
                print(f"stream-cgzsl: {problem}")
            if not problems:
                print(f"{bus.url}: all {len(ROLES)} topics of {topics.prefix!r} are there and kept as they should be")
            return problems[0].exit_code if problems else 0
    return TopicMissing.exit_code if len(problems) == len(ROLES) else 0
