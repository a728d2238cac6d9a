"""Gives and removes rights on a broker with ACLs, as `stream-cgzsl topics acls` prints them."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLFilter, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from own_broker import PASSWORDS, OwnBroker

from stream_cgzsl.bus import Right, connect
from stream_cgzsl.bus.kafka.settings import KafkaSettings

_OPERATIONS = {
    "Read": ACLOperation.READ,
    "Write": ACLOperation.WRITE,
    "Describe": ACLOperation.DESCRIBE,
    "Create": ACLOperation.CREATE,
    "DescribeConfigs": ACLOperation.DESCRIBE_CONFIGS,
}
_KINDS = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "transactional-id": ResourceType.TRANSACTIONAL_ID}


def url_of(broker: OwnBroker, user: str) -> str:
    """Without the password, which is for the environment."""
    return f"kafka://{user}@{broker.sasl_plaintext}?security=SASL_PLAINTEXT&session_timeout_ms=1000&patience_ms=5000"


def login(broker: OwnBroker, user: str) -> str:
    return url_of(broker, user).replace("@", f":{PASSWORDS[user]}@", 1)


def printed_rights(text: str) -> Iterator[tuple[str, Right]]:
    """The principals and their rights, parsed from the commands as Kafka's own tool would."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--allow-principal", required=True)
    parser.add_argument("--operation", required=True, choices=_OPERATIONS)
    for kind in _KINDS:
        parser.add_argument(f"--{kind}", action="append", default=[], dest=kind)
    for line in text.splitlines():
        program, *words = shlex.split(line, comments=True) or [""]
        if not program:
            continue
        assert program == "kafka-acls.sh"
        given = vars(parser.parse_args(words))
        for kind in _KINDS:
            for name in given[kind]:
                yield given["allow_principal"], Right(given["operation"], kind, name)


class Operator:
    """A user who may give and remove rights."""

    def __init__(self, broker: OwnBroker) -> None:
        self._broker = broker
        self._admin: Any = KafkaAdminClient(**KafkaSettings.parse(broker.url).admin())

    def give(self, user: str, rights: Iterable[Right]) -> None:
        rights = list(rights)
        answer = self._admin.create_acls([_entry(ACL, user, right) for right in rights])
        assert not answer["failed"], answer
        self._wait(user, rights, denied=False)

    @contextmanager
    def without(self, user: str, right: Right) -> Iterator[None]:
        self._admin.delete_acls([_entry(ACLFilter, user, right)])
        self._wait(user, [right], denied=True)
        try:
            yield
        finally:
            self.give(user, [right])

    def _wait(self, user: str, rights: list[Right], denied: bool) -> None:
        """Until the cluster has applied the change."""
        deadline = time.monotonic() + 10
        with connect(login(self._broker, user)) as bus:
            while bus.denied(rights) != (rights if denied else []):
                assert time.monotonic() < deadline, f"{user}: {rights}"
                time.sleep(0.02)

    def close(self) -> None:
        self._admin.close()


def _entry(kind: Any, user: str, right: Right) -> Any:
    pattern = ResourcePattern(_KINDS[right.kind], right.name)
    return kind(f"User:{user}", "*", _OPERATIONS[right.operation], ACLPermissionType.ALLOW, pattern)
