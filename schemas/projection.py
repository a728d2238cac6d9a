"""projections: what a scorer compares samples with."""

from __future__ import annotations

from typing import ClassVar

from pydantic import FiniteFloat, NonNegativeInt

from stream_cgzsl.schemas.event import Event, Name
from stream_cgzsl.schemas.vector import Vector


class Projection(Event):
    """The identifier projection of one class in one generation."""

    TYPE: ClassVar[str] = "cgzsl.projection"
    KEY: ClassVar[str | None] = "class_id"
    PAYLOAD: ClassVar[str | None] = "vector"

    class_id: Name
    vector: Vector
    bias: FiniteFloat
    seen: bool
    generation: NonNegativeInt
    name: Name | None = None


class Withdrawal(Event):
    """The class is no longer recognised. On the wire: its key with an empty value."""

    TYPE: ClassVar[str] = "cgzsl.withdrawal"
    KEY: ClassVar[str | None] = "class_id"

    class_id: Name
