"""Dead letters: reading them, and sending the mended world's records once more."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from stream_cgzsl.bus import Bus, Record
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import DeadLetter, InvalidEvent, Message, decode, encode
from stream_cgzsl.windows.gather import ORIGINAL
from stream_cgzsl.windows.ledger import read_range

log = logging.getLogger(__name__)


SENT_AGAIN = "sent-again"
"""The reason of the note that is left beside a dead letter when its record has been sent once more."""

_TOGETHER = 500


@dataclass(frozen=True)
class Buried:
    """A dead letter with where it stands, as it stands there, and the record it was."""

    offset: int
    letter: DeadLetter
    message: Message
    original: Message

    @property
    def whole(self) -> bool:
        """Whether all bytes of the record were kept."""
        return hashlib.sha256(self.letter.data).hexdigest() == self.letter.sha256


def read(bus: Bus, topics: Topics, reasons: Iterable[str] = ()) -> Iterator[Buried]:
    """Oldest first, without those whose record has been sent again; only those with one of `reasons` when any are given."""
    wanted = set(reasons)
    sent = {letter.offset for _, letter in _letters(bus, topics) if letter.reason == SENT_AGAIN}
    for item, letter in _letters(bus, topics):
        if item.offset in sent or letter.reason == SENT_AGAIN or (wanted and letter.reason not in wanted):
            continue
        headers = tuple((n.removeprefix(ORIGINAL), v) for n, v in item.headers if n.startswith(ORIGINAL))
        original = Message(item.key, letter.data or None, headers, item.timestamp_ms)
        message = Message(item.key, item.value, item.headers, item.timestamp_ms)
        yield Buried(item.offset, letter, message, original)


def _letters(bus: Bus, topics: Topics) -> Iterator[tuple[Record, DeadLetter]]:
    topic = topics["dead-letters"]
    for item in read_range(bus, topic, bus.begin_offsets(topic)[0], bus.end_offsets(topic)[0]):
        try:
            letter = decode("dead-letters", None, item.value, item.headers)
        except InvalidEvent as error:
            log.warning("passed over: %s", error.at(item.topic, item.partition, item.offset))
            continue
        assert isinstance(letter, DeadLetter)
        yield item, letter


def redrive(bus: Bus, topics: Topics, buried: Iterable[Buried]) -> tuple[int, int]:
    """Sends whole records to their topics again; returns how many were sent and how many were too large to be kept.

    A record and the note that it has been sent become visible together: none is sent twice, however this ends.
    """
    sent = skipped = 0
    items = iter(buried)
    with bus.publisher(f"{topics.prefix}.redrive") as publisher:
        while some := list(islice(items, _TOGETHER)):
            publisher.begin()
            for item in some:
                if item.whole:
                    publisher.send(item.letter.topic, item.original)
                    publisher.send(topics["dead-letters"], _note(topics, item))
                    sent += 1
                else:
                    skipped += 1
            publisher.commit()
    return sent, skipped


def _note(topics: Topics, item: Buried) -> Message:
    return encode(
        DeadLetter(
            key=item.original.key,
            data=b"",
            size=0,
            sha256=hashlib.sha256().hexdigest(),
            reason=SENT_AGAIN,
            detail=f"the record buried at offset {item.offset} ({item.letter.reason}) was sent again",
            topic=topics["dead-letters"],
            partition=0,
            offset=item.offset,
        )
    )
