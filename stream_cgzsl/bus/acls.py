"""The least rights that a Kafka cluster must give each kind of user of a stream.

This is the only such table: `stream-cgzsl topics acls` prints it as commands, workers check their own entry when they
start, and a test compares docs/operating.md with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from stream_cgzsl.bus.interface import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.bus.types import Right
from stream_cgzsl.errors import Refused
from stream_cgzsl.schemas.roles import ROLES

_INPUTS = tuple(role.name for role in ROLES.values() if role.input)
_EVERY = tuple(ROLES)


@dataclass(frozen=True)
class UserAcls:
    """What one kind of user needs, by topic role. Its group and transactional id are named `<prefix>.<name>`."""

    purpose: str
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    describe: tuple[str, ...] = ()
    create: tuple[str, ...] = ()
    group: str | None = None
    transactional_id: str | None = None

    @property
    def roles(self) -> tuple[str, ...]:
        """Every topic role it needs a right on."""
        return tuple(role for role in _EVERY if role in (*self.read, *self.write, *self.describe, *self.create))

    def rights(self, topics: Topics) -> Iterator[Right]:
        """One right per topic and operation. Read and Write on a topic imply Describe."""
        for operation, roles in (
            ("Read", self.read),
            ("Write", self.write),
            ("Describe", (*self.describe, *self.create)),
            ("Create", self.create),
            ("DescribeConfigs", self.create),
        ):
            for role in roles:
                yield Right(operation, "topic", topics[role])
        if self.group is not None:
            yield Right("Read", "group", f"{topics.prefix}.{self.group}")
        if self.transactional_id is not None:
            yield Right("Write", "transactional-id", f"{topics.prefix}.{self.transactional_id}")


ACLS: dict[str, UserAcls] = {
    "learner": UserAcls(
        "`learn`: reads its inputs, commits windows",
        read=("attributes", "features", "control", "windows", "projections", "state"),
        write=("windows", "projections", "state", "dead-letters"),
        describe=("holdout",),
        group="learner",
        transactional_id="learner",
    ),
    "scorer": UserAcls(
        "`score`: follows the generations, answers samples",
        read=("windows", "projections", "samples"),
        write=("predictions", "dead-letters"),
        group="scorer",
    ),
    "evaluator": UserAcls(
        "`evaluate`: tests every generation with the holdout",
        read=("windows", "projections", "holdout", "evaluations"),
        write=("evaluations", "dead-letters"),
        group="evaluator",
        transactional_id="evaluator",
    ),
    "producer": UserAcls(
        "your programs that describe classes, send examples and end tasks (`boundary`)",
        write=("attributes", "features", "control", "holdout"),
    ),
    "feeder": UserAcls(
        "`feed`: sends a data set, and finds out where to resume; creates no topics",
        read=("attributes", "features", "control", "holdout", "windows"),
        write=("attributes", "features", "control", "holdout"),
        describe=("projections", "state", "samples", "predictions", "evaluations", "dead-letters"),
    ),
    "client": UserAcls(
        "your programs that send samples and read predictions",
        read=("predictions",),
        write=("samples",),
        group="client",
    ),
    "follower": UserAcls("`Projections.follow` in your own process; `export`", read=("windows", "projections")),
    "watcher": UserAcls(
        "`watch`, `drift`: shows a stream on a page, or its answers in a table",
        read=("windows", "projections", "predictions", "evaluations", "dead-letters"),
        describe=("attributes", "features", "samples"),
    ),
    "auditor": UserAcls("`check`, `replay`, `copy` to a file, `dead-letters show`: reads everything", read=_EVERY),
    "operator": UserAcls(
        "`topics create`, `rollback`, `dead-letters redrive`",
        read=("windows", "dead-letters"),
        write=(*_INPUTS, "dead-letters"),
        create=_EVERY,
        transactional_id="redrive",
    ),
}


def require(bus: Bus, topics: Topics, user: str) -> None:
    """Raises unless `user`, a kind of user, has its rights and its topics exist and are configured safely."""
    acls = ACLS[user]
    denied = bus.denied(acls.rights(topics))
    if denied:
        raise Refused(
            f"{bus.url}: this user has no {', no '.join(map(str, denied))}; give it that right: "
            f"stream-cgzsl topics acls --for {user} --prefix {topics.prefix} prints the commands"
        )
    topics.require(bus, acls.roles)


def acl_commands(rights: Iterable[Right], principal: str, start: Iterable[str]) -> Iterator[list[str]]:
    """Kafka's `kafka-acls.sh` commands that give `principal` these rights, one per kind of resource and operation."""
    by_kind = attrgetter("kind", "operation")
    for (kind, operation), group in groupby(sorted(rights, key=by_kind), key=by_kind):
        names = [word for right in group for word in (f"--{kind}", right.name)]
        yield [*start, "--add", "--allow-principal", principal, "--operation", operation, *names]
