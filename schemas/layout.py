"""Which field of an event goes where in a record: tables that are built once per model, at import."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import numpy as np

from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.fields import format_time, parse_whole
from stream_cgzsl.schemas.message import Headers
from stream_cgzsl.schemas.roles import ROLES
from stream_cgzsl.schemas.vector import DTYPES

PREFIX = "ce_"
SPECVERSION = ("ce_specversion", b"1.0")
JSON = ("content-type", b"application/json")
OCTETS = ("content-type", b"application/octet-stream")
_OF_EVERY_EVENT = ("ce_specversion", "ce_type", "ce_dtype", "ce_dim", "content-type")

# ---- a field in a header or a key

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


class FieldCodec(NamedTuple):
    """A field as bytes. `read` may raise ValueError or UnicodeDecodeError; the model makes all other checks."""

    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]


_CODECS: dict[type, FieldCodec] = {
    str: FieldCodec(str.encode, bytes.decode),
    bytes: FieldCodec(bytes, bytes),
    int: FieldCodec(lambda value: b"%d" % value, lambda content: parse_whole(content.decode())),
    float: FieldCodec(lambda value: repr(value).encode(), _read_number),
    bool: FieldCodec(lambda value: b"true" if value else b"false", _read_flag),
    datetime: FieldCodec(format_time, bytes.decode),
}


def kind_of(model: type[Event], field: str) -> type:
    """The type inside `Annotated[...]` and `... | None`."""
    annotation: Any = model.model_fields[field].annotation
    while get_origin(annotation) in (Annotated, Union, types.UnionType):
        annotation = get_args(annotation)[0]
    kind: type = annotation
    return kind


# ---- one table per model, one per role


class HeaderField(NamedTuple):
    header: str
    field: str
    codec: FieldCodec
    kind: type


@dataclass(frozen=True)
class Layout:
    """How one event type is encoded. `start` are the first headers of its binary records, per dtype for vectors.

    They only say that the record is binary, not what its topic says already: every header costs each client a few
    microseconds per record. A JSON object names its type.
    """

    model: type[Event]
    key: str | None
    key_codec: FieldCodec | None
    key_required: bool
    payload: str | None
    is_vector: bool
    start: Headers
    start_by_dtype: Mapping[np.dtype[Any], Headers]
    header_fields: tuple[HeaderField, ...]


_DEFAULTS = frozenset(role.events[0] for role in ROLES.values())
"""Of these it need not be said what they are: their topic says it."""


def _layout(model: type[Event]) -> Layout:
    others = [name for name in model.model_fields if name not in (model.KEY, model.PAYLOAD)]
    kinds = {} if model.PAYLOAD is None else {name: kind_of(model, name) for name in others}
    return Layout(
        model=model,
        key=model.KEY,
        key_codec=None if model.KEY is None else _CODECS[kind_of(model, model.KEY)],
        key_required=model.KEY is not None and model.model_fields[model.KEY].is_required(),
        payload=model.PAYLOAD,
        is_vector=model.PAYLOAD == "vector",
        start=(OCTETS,) if model in _DEFAULTS else ((PREFIX + "type", model.type_name().encode()), OCTETS),
        start_by_dtype={dtype: (("ce_dtype", name.encode()),) for name, dtype in DTYPES.items()},
        header_fields=tuple(HeaderField(PREFIX + name, name, _CODECS[kind], kind) for name, kind in kinds.items()),
    )


@dataclass(frozen=True)
class RoleDecoder:
    """What it takes to decode one role: its layouts by `ce_type` (None: the default), and all headers that are ours."""

    role: str
    layouts: Mapping[bytes | None, Layout]
    tombstone: Layout | None
    headers: frozenset[str]


def _role_decoder(role: str) -> RoleDecoder:
    events, tombstone = ROLES[role].events, ROLES[role].tombstone
    layouts: dict[bytes | None, Layout] = {event.type_name().encode(): LAYOUTS[event] for event in events}
    ours = {field.header for layout in layouts.values() for field in layout.header_fields}
    return RoleDecoder(
        role=role,
        layouts={None: LAYOUTS[events[0]], **layouts},
        tombstone=None if tombstone is None else LAYOUTS[tombstone],
        headers=frozenset(ours.union(_OF_EVERY_EVENT)),
    )


TOMBSTONES = tuple(role.tombstone for role in ROLES.values() if role.tombstone is not None)
LAYOUTS: dict[type[Event], Layout] = {
    model: _layout(model) for model in (*(event for role in ROLES.values() for event in role.events), *TOMBSTONES)
}
ROLE_DECODERS: dict[str, RoleDecoder] = {name: _role_decoder(name) for name in ROLES}
