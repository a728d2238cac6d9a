"""dead-letters: records that could not be used, kept with the reason."""

from __future__ import annotations

from typing import ClassVar

from pydantic import NonNegativeInt

from stream_cgzsl.schemas.event import Blob, Event, Name, Sha256

KEPT_BYTES = 64 * 1024


class DeadLetter(Event):
    """The original key and value (the value's first 64 kB), where the record stood, and what was wrong with it."""

    TYPE: ClassVar[str] = "cgzsl.dead-letter"
    PAYLOAD: ClassVar[str | None] = "data"

    data: Blob
    size: NonNegativeInt
    sha256: Sha256
    reason: Name
    detail: str
    topic: Name
    partition: NonNegativeInt
    offset: NonNegativeInt
