"""Dead letters: reading them, and sending the mended world's records once more."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import DeadLetter, Message, decode
from stream_cgzsl.windows.gather import ORIGINAL
from stream_cgzsl.windows.ledger import read_range


@dataclass(frozen=True)
class Buried:
    """A dead letter with where it stands, and the record it was."""

    offset: int
    letter: DeadLetter
    original: Message

    @property
    def whole(self) -> bool:
        """Whether all bytes of the record were kept."""
        return hashlib.sha256(self.letter.data).hexdigest() == self.letter.sha256


def read(bus: Bus, topics: Topics, reasons: Iterable[str] = ()) -> Iterator[Buried]:
    """Oldest first; only those with one of `reasons` when any are given."""
    wanted = set(reasons)
    topic = topics["dead-letters"]
    for item in read_range(bus, topic, bus.begin_offsets(topic)[0], bus.end_offsets(topic)[0]):
        letter = decode("dead-letters", None, item.value, item.headers)
        assert isinstance(letter, DeadLetter)
        if not wanted or letter.reason in wanted:
            headers = tuple((n.removeprefix(ORIGINAL), v) for n, v in item.headers if n.startswith(ORIGINAL))
            yield Buried(item.offset, letter, Message(item.key, letter.data or None, headers, item.timestamp_ms))


def redrive(bus: Bus, buried: Iterable[Buried]) -> tuple[int, int]:
    """Sends whole records to their topics again; returns how many were sent and how many were too large to be kept.

    A record that was accepted meanwhile counts as a duplicate if it has an id; one without is trained again.
    """
    sent = skipped = 0
    with bus.writer() as writer:
        for item in buried:
            if item.whole:
                writer.send(item.letter.topic, item.original)
                sent += 1
            else:
                skipped += 1
        writer.flush()
    return sent, skipped
