"""Where each part of an event stands in a record: tables made once per model, so that no record pays for them."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import numpy as np

from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.fields import spell_time, whole_from_text
from stream_cgzsl.schemas.message import Headers
from stream_cgzsl.schemas.roles import ROLES
from stream_cgzsl.schemas.vector import DTYPES

PREFIX = "ce_"
SPECVERSION = ("ce_specversion", b"1.0")
JSON = ("content-type", b"application/json")
OCTETS = ("content-type", b"application/octet-stream")
_OF_EVERY_EVENT = ("ce_specversion", "ce_type", "ce_dtype", "ce_dim", "content-type")

# ---- how a field is spelled in a header or a key

_FLAGS = {b"true": True, b"false": False}


def _read_flag(content: bytes) -> bool:
    if content not in _FLAGS:
        raise ValueError("true or false is expected")
    return _FLAGS[content]


def _read_number(content: bytes) -> float:
    try:
        return float(content)
    except ValueError as error:
        raise ValueError("a number is expected") from error


class Spelling(NamedTuple):
    """`read` raises ValueError (UnicodeDecodeError among them) and leaves the rest of the checks to the model."""

    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]


_SPELLINGS: dict[type, Spelling] = {
    str: Spelling(str.encode, bytes.decode),
    bytes: Spelling(bytes, bytes),
    int: Spelling(lambda value: b"%d" % value, lambda content: whole_from_text(content.decode())),
    float: Spelling(lambda value: repr(value).encode(), _read_number),
    bool: Spelling(lambda value: b"true" if value else b"false", _read_flag),
    datetime: Spelling(spell_time, bytes.decode),
}


def kind_of(model: type[Event], field: str) -> type:
    """The plain type inside `Annotated[...]` and `... | None`."""
    annotation: Any = model.model_fields[field].annotation
    while get_origin(annotation) in (Annotated, Union, types.UnionType):
        annotation = get_args(annotation)[0]
    kind: type = annotation
    return kind


# ---- one table per model, one per role


class HeaderField(NamedTuple):
    header: str
    field: str
    spelling: Spelling
    kind: type


@dataclass(frozen=True)
class Layout:
    """How one event type is written. `start` are the headers every binary record of it has, per dtype for vectors.

    They say what makes the record binary, and nothing that its topic says already: each header costs every client a few
    microseconds a record. An object in JSON names its own type.
    """

    model: type[Event]
    key: str | None
    key_spelling: Spelling | None
    key_required: bool
    payload: str | None
    is_vector: bool
    start: Headers
    start_by_dtype: Mapping[np.dtype[Any], Headers]
    header_fields: tuple[HeaderField, ...]


def _layout(model: type[Event]) -> Layout:
    others = [name for name in model.model_fields if name not in (model.KEY, model.PAYLOAD)]
    kinds = {} if model.PAYLOAD is None else {name: kind_of(model, name) for name in others}
    return Layout(
        model=model,
        key=model.KEY,
        key_spelling=None if model.KEY is None else _SPELLINGS[kind_of(model, model.KEY)],
        key_required=model.KEY is not None and model.model_fields[model.KEY].is_required(),
        payload=model.PAYLOAD,
        is_vector=model.PAYLOAD == "vector",
        start=(OCTETS,),
        start_by_dtype={dtype: (("ce_dtype", name.encode()),) for name, dtype in DTYPES.items()},
        header_fields=tuple(HeaderField(PREFIX + name, name, _SPELLINGS[kind], kind) for name, kind in kinds.items()),
    )


@dataclass(frozen=True)
class Reading:
    """What a decoder of one role knows: its layouts by the content of `ce_type` (None: the default), our headers."""

    role: str
    layouts: Mapping[bytes | None, Layout]
    tombstone: Layout | None
    headers: frozenset[str]


def _reading(role: str) -> Reading:
    events, tombstone = ROLES[role].events, ROLES[role].tombstone
    layouts: dict[bytes | None, Layout] = {event.type_name().encode(): LAYOUTS[event] for event in events}
    ours = {field.header for layout in layouts.values() for field in layout.header_fields}
    return Reading(
        role=role,
        layouts={None: LAYOUTS[events[0]], **layouts},
        tombstone=None if tombstone is None else LAYOUTS[tombstone],
        headers=frozenset(ours.union(_OF_EVERY_EVENT)),
    )


TOMBSTONES = tuple(role.tombstone for role in ROLES.values() if role.tombstone is not None)
LAYOUTS: dict[type[Event], Layout] = {
    model: _layout(model) for model in (*(event for role in ROLES.values() for event in role.events), *TOMBSTONES)
}
READINGS: dict[str, Reading] = {name: _reading(name) for name in ROLES}
