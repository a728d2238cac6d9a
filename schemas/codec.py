"""Events to records and back, in binary mode (binary.py) or as JSON objects (json_codec.py).

A record is binary if its headers say so, otherwise JSON: a plain console producer works.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pydantic import ValidationError

from stream_cgzsl.schemas import binary, json_codec
from stream_cgzsl.schemas.errors import InvalidEvent, shown
from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.layout import LAYOUTS, PREFIX, ROLE_DECODERS, SPECVERSION, TOMBSTONES, Layout, RoleDecoder
from stream_cgzsl.schemas.message import UNREADABLE, Headers, Message

Encoding = Literal["binary", "json"]

MAX_BYTES = 4 * 1024 * 1024
"""The largest value that is decoded: a million float32."""


# ---- encoding


def encode(event: Event, encoding: Encoding = "binary") -> Message:
    """The record that carries `event`; an event without payload is JSON in both encodings."""
    layout = LAYOUTS[type(event)]
    key = _key_of(layout, event)
    time = event.__dict__.get("time")
    timestamp = None if time is None else max(0, (time - _EPOCH) // _MILLISECOND)
    if layout.model in TOMBSTONES:
        return Message(key, None, (), timestamp)
    if encoding == "json" or layout.payload is None:
        return Message(key, json_codec.write(layout, event), (), timestamp)
    value, headers = binary.write(layout, event)
    return Message(key, value, headers, timestamp)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def _key_of(layout: Layout, event: Event) -> bytes | None:
    if layout.key is None or layout.key_codec is None:
        return None
    content = event.__dict__[layout.key]
    return None if content is None else layout.key_codec.write(content)


# ---- decoding


def decode(role: str, key: bytes | None, value: bytes | None, headers: Headers = ()) -> Event:
    """The event in a record of a topic of this role. Raises `InvalidEvent`, and never anything else."""
    decoder = ROLE_DECODERS[role]
    for name, why in headers:
        if name == UNREADABLE:
            raise InvalidEvent(
                "unreadable",
                f"the record cannot be read: {why[:500].decode(errors='replace')}",
                "a record as Kafka defines it, within the limits of docs/operating.md",
                "Fix its producer and send the record again: nothing of it could be kept.",
            )
    if not value and decoder.tombstone is not None:
        return build(decoder.tombstone, {}, key)
    if value is not None and len(value) > MAX_BYTES:
        raise InvalidEvent(
            "too-large", f"the value has {len(value):,} bytes", f"at most {MAX_BYTES:,}", "Send a smaller vector."
        )
    given = _by_name(decoder, headers)
    layout = _layout(decoder, given)
    if binary.is_binary(layout, given) and (value or not layout.is_vector):
        return build(layout, binary.read(layout, given, value or b""), key)
    if not value:
        raise InvalidEvent(
            "empty-value", "the value is empty", f"a {layout.model.type_name()}", "Send the event itself."
        )
    document = json_codec.parse(value)
    layout = _layout_of_object(decoder, layout, given, document)
    for header, field, codec, _ in layout.header_fields:
        content = given.get(header)
        if content is not None and field not in document:
            document[field] = binary.read_field(f"the header {header}", codec, content)
    if layout.is_vector:
        json_codec.read_vector(layout, document)
    return build(layout, document, key)


def _by_name(decoder: RoleDecoder, headers: Headers) -> dict[str, bytes]:
    """The headers by name. Only ours must be unique: others are up to the producer."""
    given = dict(headers)
    if len(given) < len(headers):
        for name, times in Counter(name for name, _ in headers).items():
            if times > 1 and name in decoder.headers:
                raise InvalidEvent(
                    "repeated-header", f"the header {name} is there {times} times", "one", "Send each header once."
                )
    return given


def _layout(decoder: RoleDecoder, given: dict[str, bytes]) -> Layout:
    """The layout of the type in the headers, or the role's default."""
    version = given.get("ce_specversion")
    if version is not None and version != SPECVERSION[1]:
        raise InvalidEvent(
            "unknown-version",
            f"ce_specversion is {shown(version[:80].decode(errors='replace'))}",
            "1.0",
            "Use the headers of CloudEvents 1.0.",
        )
    type_name = given.get("ce_type")
    layout = decoder.layouts.get(type_name)
    if layout is None:
        raise _unknown_type(decoder, (type_name or b"")[:300].decode(errors="replace"))
    return layout


def _unknown_type(decoder: RoleDecoder, type_name: str) -> InvalidEvent:
    models = [layout.model for name, layout in decoder.layouts.items() if name is not None]
    known = type_name.rpartition(".v")[0] in {model.TYPE for model in models}
    return InvalidEvent(
        "unknown-version" if known else "unknown-type",
        f"the type is {shown(type_name)}",
        " or ".join(model.type_name() for model in models),
        "Upgrade this worker, or send the type of this topic.",
    )


def _layout_of_object(
    decoder: RoleDecoder, layout: Layout, given: dict[str, bytes], document: dict[str, Any]
) -> Layout:
    """The layout of the object's own `type`, which is removed from it."""
    type_name = document.pop("type", layout.model.type_name())
    if type_name == layout.model.type_name():
        return layout
    if not isinstance(type_name, str):
        raise InvalidEvent("invalid-field", f"type is {shown(type_name)}", "a text", "Leave it out, or send a text.")
    stated = decoder.layouts.get(type_name.encode())
    if stated is None:
        raise _unknown_type(decoder, type_name)
    if given.get("ce_type") is not None:
        raise InvalidEvent(
            "type-mismatch",
            f"ce_type is {shown(layout.model.type_name())} and type is {shown(type_name)}",
            "the same",
            "Send one of them.",
        )
    return stated


def build(layout: Layout, document: dict[str, Any], key: bytes | None) -> Event:
    """The event with these fields. The record's key is one of them; if the object has it too, both must be equal."""
    codec = layout.key_codec
    stated = layout.key in document
    if codec is not None and layout.key is not None and not stated:
        if key is not None:
            document[layout.key] = binary.read_field("the key", codec, key)
        elif layout.key_required:
            raise InvalidEvent(
                "missing-key",
                "the record has no key",
                f"the {layout.key} as key",
                f"Send the {layout.key} as the record's key.",
            )
    try:
        event: Event = layout.model.__pydantic_validator__.validate_python(document)
    except ValidationError as error:
        raise _invalid(layout, error) from error
    if stated and key is not None and _key_of(layout, event) != key:
        raise InvalidEvent(
            "key-mismatch",
            f"the key is {shown(key[:300].decode(errors='replace'))} and {layout.key} is "
            f"{shown((_key_of(layout, event) or b'').decode(errors='replace'))}",
            "the same",
            "Send one of them.",
        )
    return event


def _invalid(layout: Layout, error: ValidationError) -> InvalidEvent:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part)[:80] for part in first["loc"])
    reason = "not-finite" if first["type"] in ("not_finite", "finite_number") else "invalid-field"
    return InvalidEvent(
        reason, f"{where}: {first['msg']}", f"a valid {layout.model.type_name()}", json_codec.SEE_SCHEMA
    )


def foreign_headers(headers: Headers) -> Headers:
    """The headers that are not ours, which a scorer copies from a sample to its prediction."""
    return tuple(h for h in headers if not h[0].startswith(PREFIX) and h[0] != "content-type")
