"""`topics show|create|check|acls`: the topics of a stream, and the rights its users need on a Kafka cluster."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace

from stream_cgzsl.bus import Bus, TopicSpec, connect
from stream_cgzsl.bus.acls import ACLS, acl_commands
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.cli.flags import STREAM, add, positive, settings_from, topics_from
from stream_cgzsl.errors import TopicMissing, UsageError
from stream_cgzsl.runtime.secrets import without_password
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import ROLES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("show", "create", "check", "acls"))
    parser.add_argument(
        "--partitions", type=positive, default=4, help="partitions of the topics that may have several (default: 4)"
    )
    copies = parser.add_argument_group("create", "on a Kafka cluster")
    copies.add_argument(
        "--replication", type=positive, metavar="N", help="copies of every record (default: 3, or one per broker)"
    )
    copies.add_argument(
        "--min-insync",
        type=positive,
        metavar="N",
        help="copies that must be written before a record is acknowledged (default: 2 of 3 or more copies)",
    )
    acls = parser.add_argument_group("acls", "prints commands for kafka-acls.sh, without connecting to anything")
    acls.add_argument("--for", dest="user", choices=tuple(ACLS), help="whose rights (default: everyone's)")
    acls.add_argument("--principal", metavar="NAME", help="the principal (default: User:PREFIX-learner and so on)")
    acls.add_argument("--command-config", metavar="FILE", help="passed on to kafka-acls.sh: how it logs in")
    add(parser, STREAM)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_from(arguments)
    topics = topics_from(settings)
    if arguments.action == "acls":
        print_acls(arguments, settings, topics)
        return 0
    wanted = specs(arguments, settings, topics)
    with connect(settings.bus) as bus:
        if arguments.action == "create":
            before = bus.topics()
            bus.create(wanted)
            created = [spec.name for spec in topics.specs() if spec.name not in before]
            print(f"{bus.url}: created {', '.join(created) or 'nothing, all topics exist'}")
        elif arguments.action == "show":
            show(bus, topics)
        problems = topics.problems(bus)
        if arguments.action != "show":
            for weakness in bus.weaknesses(topics[role] for role in ROLES):
                print(f"stream-cgzsl: warning: {weakness}")
            for problem in problems:
                print(f"stream-cgzsl: {problem}")
            if not problems:
                print(
                    f"{bus.url}: all {len(ROLES)} topics of {topics.prefix!r} exist and are configured as they must be"
                )
            return problems[0].exit_code if problems else 0
    return TopicMissing.exit_code if len(problems) == len(ROLES) else 0


def specs(arguments: argparse.Namespace, settings: Settings, topics: Topics) -> list[TopicSpec]:
    """The topics as they are to be created."""
    replication, needed = arguments.replication, arguments.min_insync
    if (replication or needed) and not settings.bus.startswith("kafka://"):
        raise UsageError(f"{without_password(settings.bus)}: only a Kafka cluster keeps copies of a record")
    if replication and needed and needed > replication:
        raise UsageError(f"--min-insync {needed} is more than --replication {replication}: nothing could be written")
    more = {"min.insync.replicas": str(needed)} if needed else {}
    return [
        replace(spec, replication=replication or 0, settings={**spec.settings, **more})
        for spec in topics.specs(arguments.partitions)
    ]


def show(bus: Bus, topics: Topics) -> None:
    existing = bus.topics()
    for role in ROLES.values():
        spec = existing.get(topics[role.name])
        if spec is None:
            print(f"{topics[role.name]:32} missing")
            continue
        count = sum(bus.end_offsets(spec.name).values()) - sum(bus.begin_offsets(spec.name).values())
        print(f"{spec.name:32} {spec.partitions:3} partitions  {spec.cleanup:8} {count:12,} records  {role.purpose}")


def print_acls(arguments: argparse.Namespace, settings: Settings, topics: Topics) -> None:
    if not settings.bus.startswith("kafka://"):
        url = without_password(settings.bus)
        raise UsageError(f"{url}: only a Kafka cluster has access rights; name one with --bus kafka://host:port")
    from stream_cgzsl.bus.kafka.settings import addresses

    start = ["kafka-acls.sh", "--bootstrap-server", ",".join(addresses(settings.bus))]
    if arguments.command_config is not None:
        start += ["--command-config", arguments.command_config]
    for user in ACLS if arguments.user is None else (arguments.user,):
        principal = arguments.principal or f"User:{topics.prefix}-{user}"
        print(f"# {user}: {ACLS[user].purpose}")
        for words in acl_commands(ACLS[user].rights(topics), principal, start):
            print(shlex.join(words))
