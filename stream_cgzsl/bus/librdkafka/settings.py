"""Makes librdkafka's settings from ours: the same promises, the same limits and times as kafka-python's."""

from __future__ import annotations

import logging
import ssl
from typing import Any

from confluent_kafka import KafkaException

from stream_cgzsl.bus.kafka.settings import MAX_RECORD_BYTES, KafkaSettings
from stream_cgzsl.errors import Refused

_QUEUE_KILOBYTES = 32 * 1024
_FETCH_BYTES = 32 * 1024 * 1024
_PARTITION_BYTES = 2 * 1024 * 1024
_MAX_POLL_MS = 300_000
_MOST_SESSION_MS = 3_600_000
_NO_GROUP = "stream-cgzsl"
"""The client wants the name of a group even where it joins none and commits nothing."""

_log = logging.getLogger("kafka.librdkafka")
_log.addHandler(logging.NullHandler())


def opened(kind: Any, settings: KafkaSettings, arguments: dict[str, Any]) -> Any:
    """A client of that kind. It has not connected yet. Raises `Refused` for values that it does not accept."""
    try:
        return kind(arguments)
    except KafkaException as error:
        raise Refused(f"{settings.url}: {error.args[0].str().strip()}") from error


def consumer(settings: KafkaSettings, waits: bool = True) -> dict[str, Any]:
    """Reads committed records only, never skips expired ones by itself, and says when a partition is at its end."""
    return {
        **_client(settings),
        "group.id": _NO_GROUP,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": False,
        "enable.partition.eof": True,
        "check.crcs": True,
        "fetch.wait.max.ms": 250 if waits else 10,
        "fetch.max.bytes": _FETCH_BYTES,
        "max.partition.fetch.bytes": _PARTITION_BYTES,
        "receive.message.max.bytes": 2 * _FETCH_BYTES,
        "queued.max.messages.kbytes": _QUEUE_KILOBYTES,
        "fetch.queue.backoff.ms": 5,  # by default it rests for a second whenever its queue was full
        "fetch.error.backoff.ms": 100,
    }


def member(settings: KafkaSettings, group: str) -> dict[str, Any]:
    """A consumer that joins `group` and starts at the first record if the group has committed nothing."""
    session_ms = min(settings.session_timeout_ms, _MOST_SESSION_MS)  # a broker refuses so much
    return {
        **consumer(settings),
        "group.id": group,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": min(1000, session_ms // 3),
        "max.poll.interval.ms": max(_MAX_POLL_MS, session_ms),
    }


def producer(settings: KafkaSettings) -> dict[str, Any]:
    """Keys go to the partitions that every other client chooses; the outbox bounds what waits, not the client."""
    return {
        **_client(settings),
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "linger.ms": 5,
        "batch.size": 256 * 1024,
        "message.max.bytes": MAX_RECORD_BYTES,
        "delivery.timeout.ms": settings.patience_ms,
        "request.timeout.ms": settings.patience_ms * 2 // 3,
        "queue.buffering.max.messages": 1_000_000,
        "allow.auto.create.topics": False,
    }


def _client(settings: KafkaSettings) -> dict[str, Any]:
    sasl = settings.admin()
    found: dict[str, Any] = {
        "bootstrap.servers": ",".join(settings.hosts),
        "security.protocol": settings.security,
        "client.id": "stream-cgzsl",
        "socket.timeout.ms": settings.patience_ms * 2 // 3,
        "socket.connection.setup.timeout.ms": max(1000, settings.connect_ms),
        "reconnect.backoff.max.ms": 1000,
        "retry.backoff.ms": 50,
        "topic.metadata.refresh.interval.ms": settings.patience_ms,
        "logger": _log,
    }
    if "sasl_mechanism" in sasl:
        found["sasl.mechanism"] = sasl["sasl_mechanism"]
        found["sasl.username"] = sasl["sasl_plain_username"]
        found["sasl.password"] = sasl["sasl_plain_password"]
    if settings.security.endswith("SSL"):
        found |= _tls(settings)
    return found


def _tls(settings: KafkaSettings) -> dict[str, Any]:
    """Without `ca` the certificates that Python trusts, as for kafka-python."""
    tls, system = settings.tls, ssl.get_default_verify_paths()
    trusted = tls.get("ca") or system.cafile or system.capath
    found: dict[str, Any] = {"ssl.ca.location": trusted or "probe"}
    if "cert" in tls:
        found["ssl.certificate.location"] = tls["cert"]
        found["ssl.key.location"] = tls.get("key") or tls["cert"]
    if "key_password" in tls:
        found["ssl.key.password"] = tls["key_password"]
    return found
