"""dead-letters: records that could not be used, kept with the reason."""

from __future__ import annotations

from typing import ClassVar

from stream_cgzsl.schemas.event import Event, Ours
from stream_cgzsl.schemas.fields import Blob, Count, Name, Sha256, Text

KEPT_BYTES = 64 * 1024


class DeadLetter(Event, Ours):
    """The original key and value (its first 64 kB), where the record was, and what was wrong with it."""

    TYPE: ClassVar[str] = "cgzsl.dead-letter"
    KEY: ClassVar[str | None] = "key"
    PAYLOAD: ClassVar[str | None] = "data"

    key: Blob | None = None
    data: Blob
    size: Count
    sha256: Sha256
    reason: Name
    detail: Text
    topic: Name
    partition: Count
    offset: Count
