"""attributes: a class is described, described again, or retired."""

from __future__ import annotations

from typing import ClassVar

from stream_cgzsl.schemas.event import Event, VectorEvent
from stream_cgzsl.schemas.fields import Name


class Attribute(VectorEvent):
    """The description of a class: from now on it can be recognised, with or without examples."""

    TYPE: ClassVar[str] = "cgzsl.attribute"
    KEY: ClassVar[str | None] = "class_id"

    class_id: Name
    name: Name | None = None


class Retirement(Event):
    """A class is removed. On the wire: its key with an empty value."""

    TYPE: ClassVar[str] = "cgzsl.retirement"
    KEY: ClassVar[str | None] = "class_id"

    class_id: Name
