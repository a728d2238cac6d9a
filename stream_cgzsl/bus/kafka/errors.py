"""Sorts the Kafka client's errors and translates them into ours: what it was, where it happened and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

import kafka.errors as kafka

from stream_cgzsl.bus.kafka.settings import MAX_RECORD_BYTES, KafkaSettings
from stream_cgzsl.bus.types import TopicPartition
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


class Kind(Enum):
    """What an error of the client means for whoever sees it."""

    FENCED = "fenced"
    """A newer publisher has taken over."""
    DENIED = "denied"
    """A login or a right is missing."""
    REJECTED = "rejected"
    """This message is not accepted; others may be."""
    MISSING = "missing"
    EXPIRED = "expired"
    UNAVAILABLE = "unavailable"
    """There was no clear answer: whether the request took effect is unknown, and trying again may work."""
    REFUSED = "refused"
    """Any other no of a broker."""
    BUG = "bug"


_LOGIN = (kafka.SaslAuthenticationFailedError, kafka.UnsupportedSaslMechanismError, kafka.IllegalSaslStateError)
_KINDS: tuple[tuple[Kind, tuple[type[kafka.KafkaError], ...]], ...] = (
    (Kind.FENCED, (kafka.ProducerFencedError, kafka.InvalidProducerEpochError)),
    (Kind.DENIED, (kafka.AuthorizationError, *_LOGIN)),
    (
        Kind.REJECTED,
        (
            kafka.MessageSizeTooLargeError,
            kafka.RecordListTooLargeError,
            kafka.InvalidTimestampError,
            kafka.InvalidRecordError,
        ),
    ),
    (Kind.MISSING, (kafka.UnknownTopicOrPartitionError,)),
    (Kind.EXPIRED, (kafka.OffsetOutOfRangeError, kafka.LogTruncationError)),
    (Kind.BUG, (kafka.IllegalArgumentError, kafka.IllegalStateError)),
    (
        Kind.UNAVAILABLE,
        (
            kafka.RetriableError,
            kafka.UnknownError,
            kafka.CorruptRecordError,
            kafka.BrokerNotAvailableError,
            kafka.RebalanceInProgressError,
            kafka.OutOfOrderSequenceNumberError,  # these four: the cluster lost track of our producer
            kafka.DuplicateSequenceNumberError,
            kafka.UnknownProducerIdError,
            kafka.InvalidProducerIdMappingError,
            kafka.InvalidTxnStateError,
            kafka.TransactionAbortableError,
            kafka.TransactionCoordinatorFencedError,
            kafka.OperationNotAttemptedError,
            kafka.ElectionNotNeededError,
        ),
    ),
    (
        Kind.REFUSED,
        (
            kafka.BrokerResponseError,
            kafka.KafkaConfigurationError,
            kafka.UnrecognizedBrokerVersion,
            kafka.UnsupportedCodecError,
        ),
    ),
    (Kind.UNAVAILABLE, (kafka.KafkaError,)),
)
"""The first line that matches counts."""

_PLAIN_NO = (Kind.FENCED, Kind.DENIED, Kind.REJECTED)
"""What an error in a transaction may mean. After any other, it may or may not be committed."""

_NAME = re.compile(r"\b[A-Z][A-Za-z]+\b")


def kind_of(error: kafka.KafkaError) -> Kind:
    cause = unwrapped(error)
    return next(kind for kind, errors in _KINDS if isinstance(cause, errors))


def unwrapped(error: kafka.KafkaError) -> kafka.KafkaError:
    """The error that the client wrapped, as an argument or as the first of its errors named in the text."""
    if type(error) is not kafka.KafkaError:
        return error
    for part in error.args:
        if isinstance(part, kafka.KafkaError):
            return unwrapped(part)
    for name in _NAME.findall(" ".join(map(str, error.args))):
        kind = getattr(kafka, name, None)
        if isinstance(kind, type) and issubclass(kind, kafka.KafkaError) and kind not in _SAY_NOTHING:
            found: kafka.KafkaError = kind(*error.args)
            return found
    return error


_SAY_NOTHING = (kafka.KafkaError, kafka.NoError, kafka.OperationNotAttemptedError)


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
    error: kafka.KafkaError,
    settings: KafkaSettings,
    topic: str | None = None,
    operation: str = "Describe",
    publisher: str | None = None,
) -> CgzslError:
    """Our error for `error`. The failed request was about `topic`, if any, and needs the right to `operation`.

    With `publisher` it was part of a transaction of that publisher: whatever is not a plain no leaves it undecided.
    """
    kind, error = kind_of(error), unwrapped(error)
    where = f"{settings.url}: topic {topic!r}" if topic else settings.url
    if publisher is not None and kind not in _PLAIN_NO:
        return outcome_unknown(settings, publisher, error)
    if kind is Kind.FENCED:
        return Fenced(
            f"{settings.url}: a newer publisher of the same name has taken over, or this one left its transaction open "
            "for too long; stop this process, its open transaction will never be visible"
        )
    if kind is Kind.MISSING:
        return topic_missing(topic or "?", settings)
    if kind is Kind.REJECTED:
        return _rejected(error, where)
    if kind is Kind.EXPIRED:
        return Expired(f"{where}: the requested records do not exist ({error})")
    if isinstance(error, _LOGIN):
        return cannot_connect(settings, error)
    if isinstance(error, kafka.AuthorizationError):
        return _not_authorized(error, settings, topic, operation)
    if isinstance(error, kafka.KafkaConfigurationError):
        return UsageError(f"{where}: {error}")
    if isinstance(error, kafka.CorruptRecordError):
        return BusUnavailable(
            f"{where}: {error}: it was damaged on its way, or on the broker's disk; try again, and if that does not "
            "help, let another replica of the partition lead"
        )
    if kind is Kind.UNAVAILABLE:
        reason = error.__cause__ if isinstance(error, kafka.NodeNotReadyError) else None
        return BusUnavailable(
            f"{where}: no answer within {settings.patience:.0f} s ({reason or error}); "
            "the broker is down, restarting or overloaded. Try again when it answers"
        )
    if kind is Kind.BUG:
        return CgzslError(f"{where}: {error}; this is a fault in stream-cgzsl or in its Kafka client: please report it")
    return Refused(f"{where}: the broker refused the request ({error})")


def _rejected(error: kafka.KafkaError, where: str) -> CgzslError:
    if isinstance(error, kafka.InvalidTimestampError):
        return Refused(
            f"{where}: the broker does not accept the record's timestamp ({error}); correct the producer's clock, or "
            "raise the topic's message.timestamp.after.max.ms and message.timestamp.before.max.ms"
        )
    if isinstance(error, kafka.InvalidRecordError):
        return Refused(f"{where}: the broker does not accept the record ({error}); compacted topics require a key")
    return MessageTooLarge(
        f"{where}: a record is over the limit, {MAX_RECORD_BYTES:,} bytes or the topic's max.message.bytes "
        f"({error}); send less in one record, or raise the topic's limit"
    )


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


def expired(settings: KafkaSettings, tp: TopicPartition, offset: int, first: int) -> Expired:
    """A reader was to start at `offset` of a partition whose first record kept is `first`."""
    where = f"{settings.url}: {tp.topic}/{tp.partition}: offset {offset} was asked for and"
    if offset < first:
        return Expired(f"{where} the first one kept is {first}; restore the records, or skip them on purpose")
    return Expired(f"{where} the log ends before it; was the topic deleted, or its last records lost?")


def outcome_unknown(settings: KafkaSettings, publisher: str, reason: BaseException | None = None) -> BusUnavailable:
    """The transaction may or may not be committed; `reason` is None if there was no answer in time."""
    said = f"no answer within {settings.patience:.0f} s" if reason is None else f"no clear answer ({reason})"
    if isinstance(reason, kafka.InvalidProducerIdMappingError):
        said = (
            "the cluster no longer knows it, as after transactional.id.expiration.ms (default: seven days) without a "
            "transaction"
        )
    return BusUnavailable(
        f"{settings.url}: transaction of publisher {publisher!r}: {said}; its records may or may not become visible: "
        "open a new publisher of the same name and read what is there"
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
