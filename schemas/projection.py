"""projections: what scorers compare samples with."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import StringConstraints

from stream_cgzsl.schemas.event import Event, Ours
from stream_cgzsl.schemas.fields import Count, Flag, Name, NonEmptyBytes, Number
from stream_cgzsl.schemas.vector import Vector


class Projection(Event, Ours):
    """The identifier projection of one class in one generation.

    `examples` is how many examples the class has had; older records do not say.
    """

    TYPE: ClassVar[str] = "cgzsl.projection"
    KEY: ClassVar[str | None] = "class_id"
    PAYLOAD: ClassVar[str | None] = "vector"

    class_id: Name
    vector: Vector
    bias: Number
    seen: Flag
    generation: Count
    name: Name | None = None
    examples: Count | None = None


ENCODER_KEY = "\x00encoder/{}"
"""Of a chunk, by its number. It starts with a control character, so no class can have it."""

EncoderKey = Annotated[str, StringConstraints(pattern=r"^\x00encoder/(0|[1-9][0-9]{0,8})$")]


class EncoderChunk(Event, Ours):
    """A part of the encoder of generation `generation`: weights and bias of each layer, little-endian float32."""

    TYPE: ClassVar[str] = "cgzsl.encoder"
    KEY: ClassVar[str | None] = "chunk"
    PAYLOAD: ClassVar[str | None] = "data"

    chunk: EncoderKey
    generation: Count
    data: NonEmptyBytes


class Withdrawal(Event):
    """The class is no longer recognised. On the wire: its key with an empty value."""

    TYPE: ClassVar[str] = "cgzsl.withdrawal"
    KEY: ClassVar[str | None] = "class_id"

    class_id: Name
