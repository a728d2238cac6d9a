"""What the Kafka client says, in our words: which of our errors it is, where it happened and what to do."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import kafka.errors as kafka

from stream_cgzsl.bus.kafka_settings import MAX_RECORD_BYTES, KafkaSettings
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
_AWAY = (
    kafka.RetriableError,
    kafka.BrokerNotAvailableError,
    kafka.UnknownBrokerIdError,
    kafka.RebalanceInProgressError,
    kafka.OutOfOrderSequenceNumberError,  # these two: the broker lost what it knew of us, so we do not know what it has
    kafka.UnknownProducerIdError,
)
_OUT_OF_TIME = (kafka.KafkaTimeoutError, kafka.RequestTimedOutError)  # how the last try ends, whatever the first said
_LOGIN = (kafka.SaslAuthenticationFailedError, kafka.UnsupportedSaslMechanismError, kafka.IllegalSaslStateError)


class _LastFailure(logging.Filter):
    """Remembers why the client's last connection failed: it tells its log, but not its caller."""

    error: Exception | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        for argument in record.args if isinstance(record.args, tuple) else ():
            if (
                isinstance(argument, Exception)
                and not isinstance(argument, _OUT_OF_TIME)
                and not turned_away(self.error)
            ):
                self.error = argument
        return _CLIENT_LOG.isEnabledFor(record.levelno)


_CLIENT_LOG = logging.getLogger("kafka")
if _CLIENT_LOG.level == logging.NOTSET:
    _CLIENT_LOG.setLevel(logging.CRITICAL)  # what matters is raised; set another level to hear the client itself
_connection_log = logging.getLogger("kafka.net.manager")
_connection_log.setLevel(logging.WARNING)
last_failure = _LastFailure()
_connection_log.addFilter(last_failure)


def turned_away(error: Exception | None) -> bool:
    """Whether trying again is of no use: the broker does not know us, or we do not trust it."""
    return isinstance(error, _LOGIN) or "certificate verify failed" in str(error)


@contextmanager
def talking(settings: KafkaSettings, topic: str | None = None, operation: str = "Describe") -> Iterator[None]:
    """Around a request of an established client: about `topic` where it is about one, for which it needs that right."""
    try:
        yield
    except kafka.KafkaError as error:
        raise translated(error, settings, topic, operation) from error


def translated(
    error: BaseException, settings: KafkaSettings, topic: str | None = None, operation: str = "Describe"
) -> CgzslError:
    """The error of ours that `error` is."""
    cause = next((part for part in error.args if isinstance(part, BaseException)), None)
    if cause is not None and type(error) is kafka.KafkaError:
        return translated(cause, settings, topic, operation)
    where = f"{settings.url}: topic {topic!r}" if topic else settings.url
    if isinstance(error, _FENCED) or "ProducerFenced" in str(error):
        return fenced(settings)
    if isinstance(error, kafka.UnknownTopicOrPartitionError):
        return missing(topic or "?", settings)
    if isinstance(error, _TOO_LARGE):
        return MessageTooLarge(
            f"{where}: a record is over the limit, {MAX_RECORD_BYTES:,} bytes or the topic's max.message.bytes ({error}); "
            "send less in one record, or raise the topic's limit"
        )
    if isinstance(error, _EXPIRED):
        return Expired(f"{where}: the records asked for are not there ({error})")
    if isinstance(error, kafka.InvalidTimestampError):
        return Refused(
            f"{where}: the broker does not take the record's time ({error}); correct the producer's clock, or raise "
            "the topic's message.timestamp.after.max.ms and message.timestamp.before.max.ms"
        )
    if isinstance(error, _LOGIN):
        return unreachable(settings, error)
    if isinstance(error, kafka.AuthorizationError):
        return _not_allowed(error, settings, topic, operation)
    if isinstance(error, kafka.KafkaConfigurationError):
        return UsageError(f"{where}: {error}")
    if isinstance(error, _AWAY):
        reason = last_failure.error if isinstance(error, kafka.NodeNotReadyError) else None
        return BusUnavailable(
            f"{where}: no answer within {settings.patience:.0f} s ({reason or error}); "
            "the broker is down, restarting or overloaded. Try again when it answers"
        )
    return Refused(f"{where}: the broker said no ({error})")


def _not_allowed(
    error: kafka.AuthorizationError, settings: KafkaSettings, topic: str | None, operation: str
) -> Refused:
    """Names the right that is missing; the client's errors say which group or topics it is about, or nothing."""
    said = error.args[0] if error.args else None
    if isinstance(error, kafka.TopicAuthorizationFailedError):
        names = sorted(said) if isinstance(said, (set, frozenset, list)) else [topic or said]
        right = f"{operation} on topic {', '.join(map(repr, names))}"
    elif isinstance(error, kafka.GroupAuthorizationFailedError):
        right = f"Read on group {said!r}"
    elif isinstance(error, kafka.TransactionalIdAuthorizationFailedError):
        right = f"Write on transactional-id {said!r}"
    else:
        right = f"such right ({error})"
    return Refused(
        f"{settings.url}: this user has no {right}; give it that right: stream-cgzsl topics acls prints the commands for "
        "each kind of user"
    )


def missing(topic: str, settings: KafkaSettings) -> TopicMissing:
    return TopicMissing(
        f"{settings.url}: topic {topic!r} is missing, or hidden from this user; create the topics with: "
        f"stream-cgzsl topics create --bus '{settings.url}'"
    )


def fenced(settings: KafkaSettings) -> Fenced:
    return Fenced(
        f"{settings.url}: a newer publisher of the same name has taken over, or this one left its transaction open "
        "for too long; stop this process, nothing of its open transaction will ever show"
    )


def indefinite(settings: KafkaSettings, name: str) -> BusUnavailable:
    return BusUnavailable(
        f"{settings.url}: no answer to the commit of publisher {name!r} within {settings.patience:.0f} s: what it "
        "wrote may or may not show; open a new publisher of the same name and read what is there"
    )


def unreachable(settings: KafkaSettings, reason: Exception | None) -> CgzslError:
    """The broker did not let us in: away, not speaking our protocol, or not knowing us."""
    hung_up = settings.security.startswith("SASL") and "disconnected" in str(reason)  # what it does to a wrong password
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
        f"{settings.connect_ms / 1000:.0f} s{said}. It may not run, the address may be wrong, or {advice}"
    )
