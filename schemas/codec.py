"""Events to records and back.

Binary mode, in the manner of CloudEvents: the value is the payload (a vector: little-endian numbers), the headers
carry the rest as `ce_<field>`. JSON mode: the value is one object with every field. A record is read as binary when
it has the header `ce_dtype` (vectors) or a `ce_type` whose payload is bytes; otherwise as JSON, so that a plain
console producer works.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from stream_cgzsl.schemas.errors import InvalidEvent
from stream_cgzsl.schemas.event import Event, VectorEvent
from stream_cgzsl.schemas.message import Headers, Message
from stream_cgzsl.schemas.roles import ROLES, Role
from stream_cgzsl.schemas.vector import DTYPES, from_bytes, from_numbers

Encoding = Literal["binary", "json"]

MAX_BYTES = 4 * 1024 * 1024
"""The largest value a decoder looks at: a million float32."""

_PREFIX = "ce_"
_SPECVERSION = (f"{_PREFIX}specversion", b"1.0")
_JSON = ("content-type", b"application/json")
_OCTETS = ("content-type", b"application/octet-stream")


# ---- encoding


def encode(event: Event, encoding: Encoding = "binary") -> Message:
    """The record that carries `event`. Binary vectors are not copied more than once."""
    key = None if event.KEY is None else str(getattr(event, event.KEY)).encode()
    timestamp = _timestamp(getattr(event, "time", None))
    if type(event) in _TOMBSTONES:
        return Message(key, None, (), timestamp)
    if encoding == "json" or event.PAYLOAD is None:
        return Message(key, _json_value(event), (_SPECVERSION, _type_header(event), _JSON), timestamp)
    payload = getattr(event, event.PAYLOAD)
    headers = [_SPECVERSION, _type_header(event), _OCTETS]
    if isinstance(payload, np.ndarray):
        headers.append((f"{_PREFIX}dtype", payload.dtype.name.encode()))
        headers.append((f"{_PREFIX}dim", str(payload.size).encode()))
        payload = payload.astype(DTYPES[payload.dtype.name], copy=False).tobytes()
    for name, value in event.__dict__.items():
        if value is not None and name != event.PAYLOAD and name != event.KEY:
            headers.append((_PREFIX + name, _text(value).encode()))
    return Message(key, payload, tuple(headers), timestamp)


_TOMBSTONES = {role.tombstone for role in ROLES.values() if role.tombstone is not None}


def _type_header(event: Event) -> tuple[str, bytes]:
    return (f"{_PREFIX}type", event.type_name().encode())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _json_value(event: Event) -> bytes:
    document = {"type": event.type_name(), **event.model_dump(mode="json", exclude_none=True)}
    if event.PAYLOAD == "vector":
        document["dtype"] = getattr(event, "vector").dtype.name  # noqa: B009
    return to_json(document)


def _timestamp(time: datetime | None) -> int | None:
    if time is None:
        return None
    return max(0, int((time - _EPOCH).total_seconds() * 1000))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# ---- decoding


def decode(role: str, key: bytes | None, value: bytes | None, headers: Headers = ()) -> Event:
    """The event in a record of a topic of this role, or `InvalidEvent`; nothing else is ever raised."""
    contract = ROLES[role]
    if not value:
        return _tombstone(contract, key)
    if len(value) > MAX_BYTES:
        raise InvalidEvent(
            "too-large", f"the value has {len(value):,} bytes", f"at most {MAX_BYTES:,}", "Send a smaller vector."
        )
    named = dict(headers)
    try:
        fields = {name[len(_PREFIX) :]: content.decode() for name, content in named.items() if name.startswith(_PREFIX)}
    except UnicodeDecodeError as error:
        raise InvalidEvent(
            "not-utf8", f"a header is not UTF-8 ({error})", "UTF-8 text", "Encode headers as UTF-8."
        ) from error
    model = _model(contract, fields.pop("type", None), fields.pop("specversion", None))
    if "dtype" in fields or (model.PAYLOAD is not None and named.get("content-type") == _OCTETS[1]):
        document = _binary_fields(model, fields, value)
    else:
        model, document = _json_fields(contract, model, value)
    _add_key(model, document, key)
    return _build(model, document)


def _tombstone(role: Role, key: bytes | None) -> Event:
    if role.tombstone is None:
        raise InvalidEvent(
            "empty-value", "the value is empty", f"a {role.events[0].type_name()}", "Send the event itself."
        )
    document: dict[str, Any] = {}
    _add_key(role.tombstone, document, key)
    return _build(role.tombstone, document)


def _model(role: Role, type_name: str | None, specversion: str | None) -> type[Event]:
    """The event type of that name, the role's default where none is given."""
    if specversion not in (None, "1.0"):
        raise InvalidEvent(
            "unknown-version", f"ce_specversion is {specversion[:40]!r}", "1.0", "Use the CloudEvents 1.0 headers."
        )
    if type_name is None:
        return role.events[0]
    for event in role.events:
        if type_name == event.type_name():
            return event
    expected = " or ".join(event.type_name() for event in role.events)
    known = {event.TYPE for event in role.events}
    reason = "unknown-version" if type_name.rpartition(".v")[0] in known else "unknown-type"
    raise InvalidEvent(
        reason, f"the type is {type_name[:80]!r}", expected, "Upgrade this worker, or send the type of this topic."
    )


def _binary_fields(model: type[Event], fields: dict[str, Any], value: bytes) -> dict[str, Any]:
    payload: Any = value
    if model.PAYLOAD is None:
        raise InvalidEvent(
            "wrong-dtype",
            "the header ce_dtype is set",
            f"a JSON object: {model.type_name()} has no vector",
            "Send JSON.",
        )
    if model.PAYLOAD == "vector":
        payload = from_bytes(value, fields.pop("dtype", ""))
        dimension = fields.pop("dim", None)
        if dimension is not None and dimension != str(payload.size):
            raise InvalidEvent(
                "wrong-length",
                f"the value holds {payload.size} numbers and ce_dim says {dimension[:20]!r}",
                "equal numbers",
                "The record was truncated on its way, or ce_dtype is wrong.",
            )
    document = {name: fields[name] for name in fields if name in model.model_fields}
    document[model.PAYLOAD] = payload
    return document


def _json_fields(role: Role, model: type[Event], value: bytes) -> tuple[type[Event], dict[str, Any]]:
    try:
        document = from_json(value)
    except (ValueError, RecursionError) as error:
        raise InvalidEvent(
            "not-json",
            f"the value is not JSON ({str(error)[:200]})",
            "a JSON object, or a binary vector with the header ce_dtype",
            "Set ce_dtype to float32 or float16 for a binary vector.",
        ) from error
    if not isinstance(document, dict):
        raise InvalidEvent("not-json", f"the value is a JSON {type(document).__name__}", "an object", "Send an object.")
    type_name = document.pop("type", None)
    if type_name is not None:
        model = _model(role, str(type_name), None)
    if model.PAYLOAD == "vector":
        dtype = document.pop("dtype", "float32")
        if dtype not in DTYPES:
            raise InvalidEvent("wrong-dtype", f"dtype is {str(dtype)[:40]!r}", "float32 or float16", "Leave it out.")
        if isinstance(document.get("vector"), list):
            try:
                document["vector"] = from_numbers(document["vector"], dtype)
            except ValueError as error:
                raise InvalidEvent(
                    "invalid-field", f"vector: {error}", "a flat list of numbers", _SEE_SCHEMA
                ) from error
    return model, document


_SEE_SCHEMA = "See the topic's JSON Schema (stream-cgzsl schemas export)."


def _add_key(model: type[Event], document: dict[str, Any], key: bytes | None) -> None:
    """The record's key is a field of the event; where both are there, they must agree."""
    if model.KEY is None:
        return
    if key is None:
        if model.KEY not in document:
            raise InvalidEvent(
                "missing-key",
                "the record has no key",
                f"the {model.KEY} as key",
                f"Send the {model.KEY} as the record's key.",
            )
        return
    try:
        text = key.decode()
    except UnicodeDecodeError as error:
        raise InvalidEvent(
            "not-utf8", f"the key is not UTF-8 ({error})", "UTF-8 text", "Encode keys as UTF-8."
        ) from error
    inside = document.setdefault(model.KEY, text)
    if str(inside) != text:
        raise InvalidEvent(
            "key-mismatch",
            f"the key is {text[:80]!r} and {model.KEY} is {str(inside)[:80]!r}",
            "the same",
            "Send one of them.",
        )


def _build(model: type[Event], document: Mapping[str, Any]) -> Event:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "event"
        reason = "not-finite" if first["type"] == "not_finite" else "invalid-field"
        raise InvalidEvent(reason, f"{where}: {first['msg']}", f"a valid {model.type_name()}", _SEE_SCHEMA) from error


def foreign_headers(headers: Headers) -> Headers:
    """The headers that are not ours: what a scorer copies from a sample to its prediction."""
    return tuple(h for h in headers if not h[0].startswith(_PREFIX) and h[0] != "content-type")


__all__ = ["MAX_BYTES", "Encoding", "VectorEvent", "decode", "encode", "foreign_headers"]
