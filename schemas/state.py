"""state: the learner's snapshot, in chunks."""

from __future__ import annotations

from typing import ClassVar

from stream_cgzsl.schemas.event import Event, Ours
from stream_cgzsl.schemas.fields import Count, NonEmptyBytes, Positive

CHUNK_BYTES = 512 * 1024


class StateChunk(Event, Ours):
    """Chunk `chunk` of the `count` chunks of the snapshot after window `window`."""

    TYPE: ClassVar[str] = "cgzsl.state"
    KEY: ClassVar[str | None] = "chunk"
    PAYLOAD: ClassVar[str | None] = "data"

    chunk: Count
    count: Positive
    window: Count
    data: NonEmptyBytes
