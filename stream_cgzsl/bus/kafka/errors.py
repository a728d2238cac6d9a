"""Translates the Kafka client's errors into ours: which one it is, where it happened and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import kafka.errors as kafka

from stream_cgzsl.bus.kafka.settings import MAX_RECORD_BYTES, KafkaSettings
from stream_cgzsl.errors import (
    BusUnavailable,
    CgzslError,
    Expired,
    Fenced,
    MessageTooLarge,
    Refused,
    TopicMissing,
    UsageError,
)

_FENCED = (
    kafka.ProducerFencedError,
    kafka.InvalidProducerEpochError,
    kafka.InvalidProducerIdMappingError,
    kafka.InvalidTxnStateError,
)
_TOO_LARGE = (kafka.MessageSizeTooLargeError, kafka.RecordListTooLargeError)
_EXPIRED = (kafka.OffsetOutOfRangeError, kafka.LogTruncationError)
_UNAVAILABLE = (
    kafka.RetriableError,
    kafka.BrokerNotAvailableError,
    kafka.UnknownBrokerIdError,
    kafka.RebalanceInProgressError,
    kafka.OutOfOrderSequenceNumberError,  # these two: the broker forgot our producer, so what it has written is unknown
    kafka.UnknownProducerIdError,
)
_LOGIN = (kafka.SaslAuthenticationFailedError, kafka.UnsupportedSaslMechanismError, kafka.IllegalSaslStateError)


def is_rejection(error: BaseException | None) -> bool:
    """Whether retrying the connection is useless: the broker does not accept our login, or we not its certificate."""
    return isinstance(error, _LOGIN) or "certificate verify failed" in str(error)


@contextmanager
def translating(settings: KafkaSettings, topic: str | None = None, operation: str = "Describe") -> Iterator[None]:
    """Wraps a request of a connected client; `topic` and `operation` as for `translate`."""
    try:
        yield
    except kafka.KafkaError as error:
        raise translate(error, settings, topic, operation) from error


def translate(
    error: BaseException, settings: KafkaSettings, topic: str | None = None, operation: str = "Describe"
) -> CgzslError:
    """Our error for `error`. The failed request was about `topic`, if any, and needs the right to `operation`."""
    cause = next((part for part in error.args if isinstance(part, BaseException)), None)
    if cause is not None and type(error) is kafka.KafkaError:
        return translate(cause, settings, topic, operation)
    where = f"{settings.url}: topic {topic!r}" if topic else settings.url
    if isinstance(error, _FENCED) or "ProducerFenced" in str(error):
        return Fenced(
            f"{settings.url}: a newer publisher of the same name has taken over, or this one left its transaction open "
            "for too long; stop this process, its open transaction will never be visible"
        )
    if isinstance(error, kafka.UnknownTopicOrPartitionError):
        return topic_missing(topic or "?", settings)
    if isinstance(error, _TOO_LARGE):
        return MessageTooLarge(
            f"{where}: a record is over the limit, {MAX_RECORD_BYTES:,} bytes or the topic's max.message.bytes "
            f"({error}); send less in one record, or raise the topic's limit"
        )
    if isinstance(error, _EXPIRED):
        return Expired(f"{where}: the requested records do not exist ({error})")
    if isinstance(error, kafka.InvalidTimestampError):
        return Refused(
            f"{where}: the broker does not accept the record's timestamp ({error}); correct the producer's clock, or "
            "raise the topic's message.timestamp.after.max.ms and message.timestamp.before.max.ms"
        )
    if isinstance(error, _LOGIN):
        return cannot_connect(settings, error)
    if isinstance(error, kafka.AuthorizationError):
        return _not_authorized(error, settings, topic, operation)
    if isinstance(error, kafka.KafkaConfigurationError):
        return UsageError(f"{where}: {error}")
    if isinstance(error, _UNAVAILABLE):
        reason = error.__cause__ if isinstance(error, kafka.NodeNotReadyError) else None
        return BusUnavailable(
            f"{where}: no answer within {settings.patience:.0f} s ({reason or error}); "
            "the broker is down, restarting or overloaded. Try again when it answers"
        )
    return Refused(f"{where}: the broker refused the request ({error})")


def _not_authorized(
    error: kafka.AuthorizationError, settings: KafkaSettings, topic: str | None, operation: str
) -> Refused:
    """Names the missing right. The client's error may name the group or the topics, or nothing."""
    named = error.args[0] if error.args else None
    if isinstance(error, kafka.TopicAuthorizationFailedError):
        names = sorted(named) if isinstance(named, (set, frozenset, list)) else [topic or named]
        right = f"{operation} on topic {', '.join(map(repr, names))}"
    elif isinstance(error, kafka.GroupAuthorizationFailedError):
        right = f"Read on group {named!r}"
    elif isinstance(error, kafka.TransactionalIdAuthorizationFailedError):
        right = f"Write on transactional-id {named!r}"
    else:
        right = f"such right ({error})"
    return Refused(
        f"{settings.url}: this user has no {right}; give it that right: stream-cgzsl topics acls prints the commands "
        "for each kind of user"
    )


def topic_missing(topic: str, settings: KafkaSettings) -> TopicMissing:
    return TopicMissing(
        f"{settings.url}: topic {topic!r} is missing, or hidden from this user; create the topics with: "
        f"stream-cgzsl topics create --bus '{settings.url}'"
    )


def partition_missing(topic: str, partition: int, count: int, settings: KafkaSettings) -> TopicMissing:
    return TopicMissing(f"{settings.url}: topic {topic!r} has partitions 0 to {count - 1}, not {partition}")


def outcome_unknown(settings: KafkaSettings, publisher: str) -> BusUnavailable:
    return BusUnavailable(
        f"{settings.url}: no answer to the commit of publisher {publisher!r} within {settings.patience:.0f} s: its "
        "records may or may not become visible; open a new publisher of the same name and read what is there"
    )


def cannot_connect(settings: KafkaSettings, reason: BaseException | None) -> CgzslError:
    """The broker is down, does not speak our protocol, or does not accept our login."""
    hung_up = settings.security.startswith("SASL") and "disconnected" in str(reason)  # as after a wrong password
    if isinstance(reason, _LOGIN) or hung_up:
        return Refused(
            f"{settings.url}: the broker does not let us in ({reason}); check the user, the "
            "password (CGZSL_KAFKA_PASSWORD) and the mechanism (PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512)"
        )
    said = f" ({reason})" if reason is not None else ""
    if settings.security.endswith("SSL"):
        advice = (
            "its certificate may not be trusted (give the certificate authority's file with ca=), or it speaks no TLS"
        )
    else:
        advice = "it may want TLS or a password (kafka://user@host:port?security=SASL_SSL)"
    return BusUnavailable(
        f"{settings.url}: no Kafka broker answers at {', '.join(settings.hosts)} within "
        f"{settings.connect_ms / 1000:.0f} s{said}. It may not be running, the address may be wrong, or {advice}"
    )
