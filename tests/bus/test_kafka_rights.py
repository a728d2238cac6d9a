"""What counts as denied: only what the cluster says so plainly. A broker that cannot be asked denies nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kafka.errors as errors
import pytest

from stream_cgzsl.bus.interface import Right
from stream_cgzsl.bus.kafka_errors import translated
from stream_cgzsl.bus.kafka_rights import denied
from stream_cgzsl.bus.kafka_settings import KafkaSettings

SETTINGS = KafkaSettings.parse("kafka://a:1", {})
READ, GROUP = Right("Read", "topic", "t"), Right("Read", "group", "g")


class Admin:
    """An administrator's client of a cluster that answers as the test wants; real ones do not fail on command."""

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
        raise translated(error, SETTINGS) from error


@pytest.mark.parametrize(
    ("answer", "found"),
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
def test_topics(answer: dict[str, Any], found: list[Right]) -> None:
    assert denied(Admin(answer), ask, [READ]) == found


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (None, []),
        (errors.GroupIdNotFoundError(), []),
        (errors.GroupAuthorizationFailedError("g"), [GROUP]),
        (errors.IncompatibleBrokerVersion("too old to be asked"), []),
        (errors.UnsupportedVersionError(), []),
    ],
)
def test_groups(error: Exception | None, found: list[Right]) -> None:
    assert denied(Admin({}, error), ask, [GROUP]) == found
