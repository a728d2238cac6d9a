"""What all events have in common: a type, a version, perhaps a key and a payload."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from stream_cgzsl.schemas.fields import Name, Time
from stream_cgzsl.schemas.vector import Vector


class Model(BaseModel):
    """An event or a part of one: immutable, and without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Ours(Model):
    """What only our workers write. Fields of a newer version are ignored: it can be read, and gone back from.

    A change that older readers must not overlook is a new `VERSION` of its event, which they refuse.
    """

    model_config = ConfigDict(extra="ignore")


class Event(Model):
    """The meaning of a record.

    On the wire (see codec.py) the field named by `KEY` is the record's key. In binary mode the field named by
    `PAYLOAD` is the value and the other fields are headers; an event without payload is a JSON object in both modes.
    """

    TYPE: ClassVar[str]
    VERSION: ClassVar[int] = 1
    KEY: ClassVar[str | None] = None
    PAYLOAD: ClassVar[str | None] = None

    @classmethod
    def type_name(cls) -> str:
        return f"{cls.TYPE}.v{cls.VERSION}"

    def __eq__(self, other: object) -> bool:
        """Equal types and fields; vectors are equal if their dtype and every bit is."""
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(mine, other.__dict__[name]) for name, mine in self.__dict__.items())

    __hash__ = None  # type: ignore[assignment]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return bool(a == b)


class VectorEvent(Event):
    """An event whose payload is one vector.

    Records with the same `id` count once. `time` is when it happened at its source. Both may be missing.
    """

    PAYLOAD: ClassVar[str | None] = "vector"

    vector: Vector
    id: Name | None = None
    time: Time | None = None
