"""What a Kafka cluster lets this user do, asked before it matters: a right that is missing should be known at the start."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import kafka.errors as errors

from stream_cgzsl.bus.interface import Right
from stream_cgzsl.errors import Refused

Ask = Callable[[Callable[[], Any]], Any]
"""Gives the answer to an administrator's request, or raises an error of ours."""

_OPERATIONS = {
    "Read": "READ",
    "Write": "WRITE",
    "Describe": "DESCRIBE",
    "Create": "CREATE",
    "DescribeConfigs": "DESCRIBE_CONFIGS",
}


def denied(admin: Any, ask: Ask, rights: Iterable[Right]) -> list[Right]:
    """See `Bus.denied`. A topic that is missing says nothing about rights, and old brokers say nothing at all."""
    rights = list(rights)
    names = sorted({right.name for right in rights if right.kind == "topic"})
    allowed = _allowed(ask(lambda: admin.describe_topics(names))) if names else {}
    found = []
    for right in rights:
        if right.kind == "topic":
            refused = _OPERATIONS[right.operation] not in allowed.get(right.name, _OPERATIONS.values())
        else:
            refused = _refused(admin, ask, right)
        if refused:
            found.append(right)
    return found


def _allowed(topics: Iterable[dict[str, Any]]) -> dict[str, frozenset[str]]:
    """By topic, what this user may do, where the cluster tells."""
    allowed = {}
    for topic in topics:
        kind = errors.for_code(topic["error_code"])
        if kind is errors.TopicAuthorizationFailedError:
            allowed[topic["name"]] = frozenset[str]()
        elif kind is errors.NoError and topic.get("authorized_operations"):
            allowed[topic["name"]] = frozenset(topic["authorized_operations"])
    return allowed


def _refused(admin: Any, ask: Ask, right: Right) -> bool:
    """Whether the cluster does not even say who keeps this group or transactional id, which needs the least of rights."""
    describe = admin.describe_groups if right.kind == "group" else admin.describe_transactions

    def request() -> None:
        with suppress(errors.GroupIdNotFoundError, errors.TransactionalIdNotFoundError):  # it is new
            describe([right.name])

    try:
        ask(request)
    except Refused as error:
        return isinstance(error.__cause__, errors.AuthorizationError)  # any other is a broker that cannot be asked this
    return False
