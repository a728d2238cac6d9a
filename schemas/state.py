"""state: the learner's snapshot, in chunks."""

from __future__ import annotations

from typing import ClassVar

from pydantic import NonNegativeInt, PositiveInt

from stream_cgzsl.schemas.event import Blob, Event

CHUNK_BYTES = 512 * 1024


class StateChunk(Event):
    """Piece `chunk` of the `count` pieces of the snapshot taken after window `window`."""

    TYPE: ClassVar[str] = "cgzsl.state"
    KEY: ClassVar[str | None] = "chunk"
    PAYLOAD: ClassVar[str | None] = "data"

    chunk: NonNegativeInt
    count: PositiveInt
    window: NonNegativeInt
    data: Blob
