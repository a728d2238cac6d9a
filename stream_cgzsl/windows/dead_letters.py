"""Dead letters: what is kept of a record that could not be used, reading them back, and redriving them."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from stream_cgzsl.bus import Bus, Record
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import KEPT_BYTES, DeadLetter, Headers, InvalidEvent, Message, decode, encode
from stream_cgzsl.windows.ledger import read_topic

log = logging.getLogger(__name__)

ORIGINAL = "original_"
"""Prefix of the headers a dead letter has from the record it was."""

SENT_AGAIN = "sent-again"
"""The reason of the note that is written when the record of a dead letter has been sent again."""

_REDRIVE_BATCH = 500


def dead_letter(record: Record, error: InvalidEvent) -> Message:
    """The record with the reason why it could not be used, and its own key and headers.

    At most 64 kB are kept of value, key and headers each, so no record is too large for a dead letter.
    """
    value = record.value or b""
    letter = DeadLetter(
        data=value[:KEPT_BYTES],
        size=len(value),
        sha256=hashlib.sha256(value).hexdigest(),
        reason=error.reason,
        detail=error.at(record.topic, record.partition, record.offset),
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
    )
    message = encode(letter)
    key = None if record.key is None else record.key[:KEPT_BYTES]
    headers = message.headers + _original(record.headers)
    return message._replace(key=key, headers=headers, timestamp_ms=record.timestamp_ms)


def _original(headers: Headers) -> Headers:
    """A record's headers under their new names, truncated to the size that is kept."""
    kept: list[tuple[str, bytes]] = []
    room = KEPT_BYTES
    for header, value in headers:
        name = (ORIGINAL + header)[:256]
        room -= len(name.encode())
        if room < 0:
            break
        kept.append((name, value[:room]))
        room -= len(kept[-1][1])
    return tuple(kept)


@dataclass(frozen=True)
class StoredLetter:
    """A dead letter as it was read: its offset, its content, its own message, and the record it was made from."""

    offset: int
    letter: DeadLetter
    message: Message
    original: Message

    @property
    def complete(self) -> bool:
        """Whether all bytes of the record were kept. Of one that no client can read, none are."""
        return self.letter.reason != "unreadable" and hashlib.sha256(self.letter.data).hexdigest() == self.letter.sha256


def read(bus: Bus, topics: Topics, reasons: Iterable[str] = ()) -> Iterator[StoredLetter]:
    """Dead letters whose record has not been sent again, oldest first; only those with one of `reasons`, if given."""
    wanted = set(reasons)
    sent = {letter.offset for _, letter in _letters(bus, topics) if letter.reason == SENT_AGAIN}
    for item, letter in _letters(bus, topics):
        if item.offset in sent or letter.reason == SENT_AGAIN or (wanted and letter.reason not in wanted):
            continue
        headers = tuple((n.removeprefix(ORIGINAL), v) for n, v in item.headers if n.startswith(ORIGINAL))
        original = Message(item.key, letter.data or None, headers, item.timestamp_ms)
        message = Message(item.key, item.value, item.headers, item.timestamp_ms)
        yield StoredLetter(item.offset, letter, message, original)


def _letters(bus: Bus, topics: Topics) -> Iterator[tuple[Record, DeadLetter]]:
    for item in read_topic(bus, topics["dead-letters"]):
        try:
            letter = decode("dead-letters", None, item.value, item.headers)
        except InvalidEvent as error:
            log.warning("skipped: %s", error.at(item.topic, item.partition, item.offset))
            continue
        assert isinstance(letter, DeadLetter)
        yield item, letter


def redrive(bus: Bus, topics: Topics, letters: Iterable[StoredLetter]) -> tuple[int, int]:
    """Sends complete records to their topics again; returns how many were sent and how many were incomplete.

    A record and the note that it was sent become visible in one transaction, so none is sent twice.
    """
    sent = skipped = 0
    items = iter(letters)
    with bus.publisher(f"{topics.prefix}.redrive") as publisher:
        while batch := list(islice(items, _REDRIVE_BATCH)):
            publisher.begin()
            for item in batch:
                if item.complete:
                    publisher.send(item.letter.topic, item.original)
                    publisher.send(topics["dead-letters"], _sent_note(topics, item))
                    sent += 1
                else:
                    skipped += 1
            publisher.commit()
    return sent, skipped


def _sent_note(topics: Topics, item: StoredLetter) -> Message:
    return encode(
        DeadLetter(
            key=item.original.key,
            data=b"",
            size=0,
            sha256=hashlib.sha256().hexdigest(),
            reason=SENT_AGAIN,
            detail=f"the record of the dead letter at offset {item.offset} ({item.letter.reason}) was sent again",
            topic=topics["dead-letters"],
            partition=0,
            offset=item.offset,
        )
    )
