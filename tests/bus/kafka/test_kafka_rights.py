"""Only rights that the cluster plainly denies count as denied, not those that it cannot be asked about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kafka.errors as errors
import pytest

from stream_cgzsl.bus import Right
from stream_cgzsl.bus.kafka.errors import translate
from stream_cgzsl.bus.kafka.rights import find_denied
from stream_cgzsl.bus.kafka.settings import KafkaSettings

SETTINGS = KafkaSettings.parse("kafka://a:1", {})
READ, GROUP = Right("Read", "topic", "t"), Right("Read", "group", "g")


class Admin:
    """An admin client with the answers of the test: a real cluster does not fail on command."""

    def __init__(self, topic: dict[str, Any], group: Exception | None = None) -> None:
        self._topic = topic
        self._group = group

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        return [{"name": name, "error_code": 0, **self._topic} for name in names]

    def describe_groups(self, names: list[str]) -> None:  # noqa: ARG002
        if self._group is not None:
            raise self._group


def ask(request: Callable[[], Any]) -> Any:
    try:
        return request()
    except errors.KafkaError as error:
        raise translate(error, SETTINGS) from error


@pytest.mark.parametrize(
    ("answer", "denied"),
    [
        ({"authorized_operations": ["READ", "DESCRIBE"]}, []),
        ({"authorized_operations": ["DESCRIBE"]}, [READ]),
        ({"error_code": errors.TopicAuthorizationFailedError.errno}, [READ]),
        ({"error_code": errors.UnknownTopicOrPartitionError.errno}, []),
        ({"authorized_operations": None}, []),
        ({"authorized_operations": []}, []),
        ({}, []),
    ],
)
def test_topics(answer: dict[str, Any], denied: list[Right]) -> None:
    assert find_denied(Admin(answer), ask, [READ]) == denied


@pytest.mark.parametrize(
    ("error", "denied"),
    [
        (None, []),
        (errors.GroupIdNotFoundError(), []),
        (errors.GroupAuthorizationFailedError("g"), [GROUP]),
        (errors.IncompatibleBrokerVersion("too old to be asked"), []),
        (errors.UnsupportedVersionError(), []),
    ],
)
def test_groups(error: Exception | None, denied: list[Right]) -> None:
    assert find_denied(Admin({}, error), ask, [GROUP]) == denied
