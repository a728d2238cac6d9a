"""The event bus: topics of partitioned records, on a Kafka cluster or in an SQLite file. `connect(url)` opens one."""

from __future__ import annotations

from urllib.parse import urlsplit

from stream_cgzsl.bus.interface import Bus, Lock, OffsetWriter, Publisher, Reader, Subscription, Writer
from stream_cgzsl.bus.types import Receipt, Record, Right, TopicPartition, TopicSpec
from stream_cgzsl.errors import UsageError


def connect(url: str) -> Bus:
    """The bus at `url`: `sqlite:///path.db` or `kafka://host:port[,host:port]`. Raises `UsageError` otherwise."""
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        from stream_cgzsl.bus.sqlite.bus import SqliteBus

        return SqliteBus(url)
    if scheme == "kafka":
        from stream_cgzsl.bus.kafka.settings import KafkaSettings
        from stream_cgzsl.bus.librdkafka.choice import wants_librdkafka

        if wants_librdkafka(KafkaSettings.parse(url)):
            from stream_cgzsl.bus.librdkafka.bus import LibrdkafkaBus

            return LibrdkafkaBus(url)
        from stream_cgzsl.bus.kafka.bus import KafkaBus

        return KafkaBus(url)
    raise UsageError(f"unknown kind of bus {scheme!r}: use sqlite:///path.db or kafka://host:port")


__all__ = [
    "Bus",
    "Lock",
    "OffsetWriter",
    "Publisher",
    "Reader",
    "Receipt",
    "Record",
    "Right",
    "Subscription",
    "TopicPartition",
    "TopicSpec",
    "Writer",
    "connect",
]
