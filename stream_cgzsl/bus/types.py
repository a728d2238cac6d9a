"""The values that pass between a bus and its users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stream_cgzsl.schemas.message import Headers


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class Record(NamedTuple):
    """A message as read from the bus. An empty value may be `None` or `b""`; both mean the same."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True)
class TopicSpec:
    """How a topic is configured. `cleanup` is `keep` (forever), `expire` (as the bus is configured) or `compact`.

    `replication` is how many brokers keep a copy; 0 means three, or all if there are fewer.
    """

    name: str
    partitions: int = 1
    cleanup: str = "keep"
    settings: Mapping[str, str] = field(default_factory=dict)
    replication: int = 0


class Right(NamedTuple):
    """Permission for one operation on one named resource of a cluster.

    `operation` is Read, Write, Describe, Create or DescribeConfigs; `kind` is topic, group or transactional-id.
    """

    operation: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.operation} on {self.kind} {self.name!r}"


@dataclass
class Receipt:
    """Where a message was written. Filled in by the `flush` or `commit` after its `send`, or by a later `push`."""

    partition: int = -1
    offset: int = -1

    @property
    def known(self) -> bool:
        return self.partition >= 0
