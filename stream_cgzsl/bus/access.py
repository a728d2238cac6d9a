"""Who does what with a stream's topics: the least that a Kafka cluster must allow each kind of user.

The one table: `stream-cgzsl topics acls` prints it as commands, workers look at their line of it when they start, and
docs/operating.md is checked against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from stream_cgzsl.bus.interface import Bus, Right
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import Refused
from stream_cgzsl.schemas.roles import ROLES

_INPUTS = tuple(role.name for role in ROLES.values() if role.input)
_EVERY = tuple(ROLES)


@dataclass(frozen=True)
class Access:
    """What one kind of user needs, by topic role. Its group and its transactional id are named `<prefix>.<name>`."""

    purpose: str
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    describe: tuple[str, ...] = ()
    create: tuple[str, ...] = ()
    group: str | None = None
    transactional_id: str | None = None

    @property
    def roles(self) -> tuple[str, ...]:
        """Every topic role it has to do with."""
        return tuple(role for role in _EVERY if role in (*self.read, *self.write, *self.describe, *self.create))

    def rights(self, topics: Topics) -> Iterator[Right]:
        """One by one. Who may read or write a topic may describe it."""
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


ACCESS: dict[str, Access] = {
    "learner": Access(
        "`learn`: reads its inputs, commits windows",
        read=("attributes", "features", "control", "windows", "projections", "state"),
        write=("windows", "projections", "state", "dead-letters"),
        describe=("holdout",),
        group="learner",
        transactional_id="learner",
    ),
    "scorer": Access(
        "`score`: follows the generations, answers samples",
        read=("windows", "projections", "samples"),
        write=("predictions", "dead-letters"),
        group="scorer",
    ),
    "evaluator": Access(
        "`evaluate`: tests every generation with the holdout",
        read=("windows", "projections", "holdout", "evaluations"),
        write=("evaluations", "dead-letters"),
        group="evaluator",
        transactional_id="evaluator",
    ),
    "producer": Access(
        "whoever describes classes, sends examples and ends tasks (`boundary`)",
        write=("attributes", "features", "control", "holdout"),
    ),
    "feeder": Access(
        "`feed`: sends a data set and looks how far it came; creates no topics",
        read=("attributes", "features", "control", "holdout", "windows"),
        write=("attributes", "features", "control", "holdout"),
        describe=("projections", "state", "samples", "predictions", "evaluations", "dead-letters"),
    ),
    "client": Access("whoever asks and reads the answers", read=("predictions",), write=("samples",), group="client"),
    "follower": Access("`Projections.follow` in a process of your own; `export`", read=("windows", "projections")),
    "watcher": Access(
        "`watch`, `drift`: shows a stream on a page, or its answers in a table",
        read=("windows", "projections", "predictions", "evaluations", "dead-letters"),
        describe=("attributes", "features", "samples"),
    ),
    "auditor": Access("`check`, `replay`, `copy` to a file, `dead-letters show`: reads everything", read=_EVERY),
    "operator": Access(
        "`topics create`, `rollback`, `dead-letters redrive`",
        read=("windows", "dead-letters"),
        write=(*_INPUTS, "dead-letters"),
        create=_EVERY,
        transactional_id="redrive",
    ),
}


def require(bus: Bus, topics: Topics, user: str) -> None:
    """Raises unless the topics are there, kept well, and `user`, a kind of user, may do with them what it has to."""
    access = ACCESS[user]
    denied = bus.denied(access.rights(topics))
    if denied:
        raise Refused(
            f"{bus.url}: this user has no {', no '.join(map(str, denied))}; give it that right: "
            f"stream-cgzsl topics acls --for {user} --prefix {topics.prefix} prints the commands"
        )
    topics.require(bus, access.roles)


def acl_commands(rights: Iterable[Right], principal: str, start: Iterable[str]) -> Iterator[list[str]]:
    """Command lines of Kafka's own `kafka-acls.sh` that give `principal` these rights, one an operation and kind."""
    for (kind, operation), group in groupby(sorted(rights, key=_kind), key=_kind):
        names = [word for right in group for word in (f"--{kind}", right.name)]
        yield [*start, "--add", "--allow-principal", principal, "--operation", operation, *names]


def _kind(right: Right) -> tuple[str, str]:
    return right.kind, right.operation
