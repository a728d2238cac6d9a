"""Makes records of librdkafka's messages, many at once: a loop in Python would cost more than fetching them."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

from confluent_kafka import Message

from stream_cgzsl.bus.kafka.reading import full_headers
from stream_cgzsl.bus.kafka.settings import MAX_RECORD_BYTES
from stream_cgzsl.bus.types import Record
from stream_cgzsl.schemas.message import UNREADABLE

_time = itemgetter(1)
_content = itemgetter(1)
_record = partial(tuple.__new__, Record)  # as `Record._make`, without a call of Python's


def records_of(messages: Sequence[Message]) -> list[Record]:
    """A record for each message, in order; none of them may be an error."""
    try:
        headers: list[Any] = [tuple(found) if found else () for found in map(Message.headers, messages)]
    except SystemError:
        return [_with_care(message) for message in messages]
    if None in map(_content, chain.from_iterable(headers)):
        headers = [full_headers(found) for found in headers]
    if max(map(len, messages), default=0) > MAX_RECORD_BYTES:
        return [_checked(message, found) for message, found in zip(messages, headers, strict=True)]
    return list(
        map(
            _record,
            zip(
                map(Message.topic, messages),
                map(Message.partition, messages),
                map(Message.offset, messages),
                map(_time, map(Message.timestamp, messages)),
                map(Message.key, messages),
                map(Message.value, messages),
                headers,
                strict=True,
            ),
        )
    )


def _with_care(message: Any) -> Record:
    """A name of a header that is not UTF-8 is a hole in the client's list, and touching a hole ends the process.

    The first time that it makes such a list, the client raises `SystemError`: provided that it is called through
    `map`, which looks. Whatever looks for references passes over holes.
    """
    try:
        (headers,) = map(Message.headers, (message,))
    except SystemError:
        return _unreadable(message, "it is damaged (the name of a header is not UTF-8)")
    if headers and len(gc.get_referents(*headers)) < 2 * len(headers):
        return _unreadable(message, "it is damaged (the name of a header is not UTF-8)")
    return _checked(message, headers)


def _checked(message: Any, headers: Any) -> Record:
    if len(message) > MAX_RECORD_BYTES:
        return _unreadable(message, f"it has {len(message):,} bytes")
    return _bare(message)._replace(key=message.key(), value=message.value(), headers=full_headers(headers or []))


def _unreadable(message: Any, reason: str) -> Record:
    return _bare(message)._replace(headers=((UNREADABLE, reason.encode()),))


def _bare(message: Any) -> Record:
    return Record(message.topic(), message.partition(), message.offset(), message.timestamp()[1], None, None, ())
