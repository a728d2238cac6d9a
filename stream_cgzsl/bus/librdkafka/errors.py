"""Turns librdkafka's errors into those of kafka-python, so that both are sorted and explained in one place."""

from __future__ import annotations

import kafka.errors as kafka
from confluent_kafka import KafkaError

_LOCAL: dict[int, type[kafka.KafkaError]] = {
    KafkaError._TIMED_OUT: kafka.KafkaTimeoutError,
    KafkaError._MSG_TIMED_OUT: kafka.KafkaTimeoutError,
    KafkaError._TIMED_OUT_QUEUE: kafka.KafkaTimeoutError,
    KafkaError._TRANSPORT: kafka.KafkaConnectionError,
    KafkaError._ALL_BROKERS_DOWN: kafka.KafkaConnectionError,
    KafkaError._RESOLVE: kafka.KafkaConnectionError,
    KafkaError._SSL: kafka.KafkaConnectionError,
    KafkaError._AUTHENTICATION: kafka.SaslAuthenticationFailedError,
    KafkaError._UNKNOWN_TOPIC: kafka.UnknownTopicOrPartitionError,
    KafkaError._UNKNOWN_PARTITION: kafka.UnknownTopicOrPartitionError,
    KafkaError._AUTO_OFFSET_RESET: kafka.OffsetOutOfRangeError,
    KafkaError._LOG_TRUNCATION: kafka.OffsetOutOfRangeError,
    KafkaError._BAD_MSG: kafka.CorruptRecordError,
    KafkaError._INVALID_ARG: kafka.IllegalArgumentError,
    KafkaError._STATE: kafka.IllegalStateError,
    KafkaError._FENCED: kafka.ProducerFencedError,
}
"""Those that no broker has sent. Any other of them means that there was no clear answer."""

STUCK = (KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION, KafkaError._PARTIAL, KafkaError._UNDERFLOW)
"""Something in a partition that librdkafka does not get past."""

LATER = (
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError._WAIT_COORD,
    KafkaError._NO_OFFSET,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
"""Of a commit: the group is changing, or its coordinator is. Polling goes on with that."""

_IGNORED = (
    *LATER,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)


def passes(error: KafkaError) -> bool:
    """Whether the client goes on after an error that it reports between records.

    A topic may be unknown for a moment after it was made; one that stays away is noticed like a silent broker.
    """
    return error.code() in _IGNORED or bool(error.retriable())


def as_kafka(error: KafkaError, about: object = None) -> kafka.KafkaError:
    """The same error as kafka-python would raise it, with `about` instead of its text if that is given."""
    code = error.code()
    kind = kafka.for_code(code) if code >= 0 else _LOCAL.get(code, kafka.KafkaError)
    found: kafka.KafkaError = kind(error.str() if about is None else about)
    return found
