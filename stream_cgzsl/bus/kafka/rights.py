"""Checks which rights a Kafka cluster gives this user, so that a missing one is reported at the start."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import kafka.errors as errors

from stream_cgzsl.bus.types import Right
from stream_cgzsl.errors import Refused

Ask = Callable[[Callable[[], Any]], Any]
"""Returns the result of a request of the admin client, or raises one of our errors."""

_OPERATIONS = {
    "Read": "READ",
    "Write": "WRITE",
    "Describe": "DESCRIBE",
    "Create": "CREATE",
    "DescribeConfigs": "DESCRIBE_CONFIGS",
}


def find_denied(admin: Any, ask: Ask, rights: Iterable[Right]) -> list[Right]:
    """As `Bus.denied`. Rights on a missing topic cannot be checked, nor can any right on an old broker."""
    rights = list(rights)
    names = sorted({right.name for right in rights if right.kind == "topic"})
    allowed = _allowed_operations(ask(lambda: admin.describe_topics(names))) if names else {}
    denied = []
    for right in rights:
        if right.kind == "topic":
            is_denied = _OPERATIONS[right.operation] not in allowed.get(right.name, _OPERATIONS.values())
        else:
            is_denied = _describing_is_denied(admin, ask, right)
        if is_denied:
            denied.append(right)
    return denied


def _allowed_operations(topics: Iterable[dict[str, Any]]) -> dict[str, frozenset[str]]:
    """By topic, what this user may do, as far as the cluster tells."""
    allowed = {}
    for topic in topics:
        kind = errors.for_code(topic["error_code"])
        if kind is errors.TopicAuthorizationFailedError:
            allowed[topic["name"]] = frozenset[str]()
        elif kind is errors.NoError and topic.get("authorized_operations"):
            allowed[topic["name"]] = frozenset(topic["authorized_operations"])
    return allowed


def _describing_is_denied(admin: Any, ask: Ask, right: Right) -> bool:
    """Whether the user may not even describe this group or transactional id, which any right on it would include."""
    describe = admin.describe_groups if right.kind == "group" else admin.describe_transactions

    def request() -> None:
        with suppress(errors.GroupIdNotFoundError, errors.TransactionalIdNotFoundError):  # it does not exist yet
            describe([right.name])

    try:
        ask(request)
    except Refused as error:
        return isinstance(error.__cause__, errors.AuthorizationError)  # otherwise the broker does not know the request
    return False
