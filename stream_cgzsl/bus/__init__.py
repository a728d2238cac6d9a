"""How events travel. `connect(url)` is the way in."""

from __future__ import annotations

from urllib.parse import urlsplit

from stream_cgzsl.bus.interface import (
    Bus,
    Lock,
    Publisher,
    Reader,
    Receipt,
    Record,
    Subscription,
    TopicPartition,
    TopicSpec,
    Writer,
)
from stream_cgzsl.errors import UsageError


def connect(url: str) -> Bus:
    """The bus at `url`: `sqlite:///path.db` or `kafka://host:port[,host:port]`. Raises `UsageError` for any other."""
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        from stream_cgzsl.bus.sqlite import SqliteBus

        return SqliteBus(url)
    if scheme == "kafka":
        from stream_cgzsl.bus.kafka import KafkaBus

        return KafkaBus(url)
    raise UsageError(f"unknown kind of bus {scheme!r}: use sqlite:///path.db or kafka://host:port")


__all__ = [
    "Bus",
    "Lock",
    "Publisher",
    "Reader",
    "Receipt",
    "Record",
    "Subscription",
    "TopicPartition",
    "TopicSpec",
    "Writer",
    "connect",
]
