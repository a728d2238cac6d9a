"""projections: what scorers compare samples with."""

from __future__ import annotations

from typing import ClassVar

from stream_cgzsl.schemas.event import Event, Ours
from stream_cgzsl.schemas.fields import Count, Flag, Name, Number
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


class Withdrawal(Event):
    """The class is no longer recognised. On the wire: its key with an empty value."""

    TYPE: ClassVar[str] = "cgzsl.withdrawal"
    KEY: ClassVar[str | None] = "class_id"

    class_id: Name
