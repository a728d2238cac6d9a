"""The AsyncAPI document: every topic, who writes it, and what its records look like."""

from __future__ import annotations

from datetime import datetime

from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.json_schemas import Schema, file_name, object_schema
from stream_cgzsl.schemas.layout import JSON, LAYOUTS, OCTETS, SPECVERSION, Layout, kind_of
from stream_cgzsl.schemas.roles import ROLES, Role
from stream_cgzsl.schemas.vector import DTYPES

_BINDING = {"bindingVersion": "0.5.0"}
_WHOLE: Schema = {"type": "string", "pattern": "^(0|[1-9][0-9]*)$"}
_AS_TEXT: dict[type, Schema] = {
    int: _WHOLE,
    float: {"type": "string", "description": "A decimal number."},
    bool: {"type": "string", "enum": ["true", "false"]},
    bytes: {"type": "string", "format": "binary"},
    datetime: {"type": "string", "format": "date-time"},
}
_TOPIC_CONFIGURATION: dict[str, Schema] = {
    "keep": {"cleanup.policy": ["delete"], "retention.ms": -1, "retention.bytes": -1},
    "expire": {"cleanup.policy": ["delete"]},
    "compact": {"cleanup.policy": ["compact"]},
}


def document() -> Schema:
    """The whole document. The schemas of JSON records are in separate files, under `json/`."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "stream-cgzsl",
            "version": "1.0.0",
            "description": (
                "Classes described by attribute vectors are recognised from their descriptions, learned from labelled "
                "features, and not forgotten. Records are CloudEvents in binary mode or plain JSON objects."
            ),
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {role.name: _channel(role) for role in ROLES.values()},
        "operations": {f"{'read' if role.input else 'write'}-{role.name}": _operation(role) for role in ROLES.values()},
        "components": {
            "messages": {name: message for role in ROLES.values() for name, message in _messages(role).items()}
        },
    }


def _channel(role: Role) -> Schema:
    kafka: Schema = {"topicConfiguration": _TOPIC_CONFIGURATION[role.cleanup], **_BINDING}
    if role.single:
        kafka = {"partitions": 1, **kafka}
    return {
        "address": f"{{prefix}}.{role.name}",
        "description": f"{role.purpose}.",
        "parameters": {"prefix": {"default": "cgzsl", "description": "The stream. Each prefix has its own learner."}},
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in _messages(role)},
        "bindings": {"kafka": kafka},
    }


def _operation(role: Role) -> Schema:
    """AsyncAPI names actions from the application's side, and this is the application."""
    return {
        "action": "receive" if role.input else "send",
        "channel": {"$ref": f"#/channels/{role.name}"},
        "summary": f"{role.purpose}.",
    }


# ---- messages


def _messages(role: Role) -> dict[str, Schema]:
    messages: dict[str, Schema] = {}
    for event in role.events:
        name = event.TYPE.removeprefix("cgzsl.")
        named_by_default = event is role.events[0]
        if event.PAYLOAD is not None:
            messages[f"{name}.binary"] = _binary(LAYOUTS[event], named_by_default)
        messages[f"{name}.json"] = _json(event)
    if role.tombstone is not None:
        messages[role.tombstone.TYPE.removeprefix("cgzsl.")] = _tombstone(role.tombstone)
    return messages


def _binary(layout: Layout, named_by_default: bool) -> Schema:
    fields = layout.model.model_fields
    headers: Schema = _common_headers(layout.model, OCTETS[1])
    required = [] if named_by_default else ["ce_type"]
    if layout.is_vector:
        headers["ce_dtype"] = {"type": "string", "enum": list(DTYPES)}
        headers["ce_dim"] = {**_WHOLE, "description": "How many numbers the vector has, as a check."}
        required.append("ce_dtype")
    else:
        required.append(OCTETS[0])
    for header, field, _, kind in layout.header_fields:
        headers[header] = _as_text(layout.model, field, kind)
        if fields[field].is_required():
            required.append(header)
    content = "Little-endian numbers of the format in ce_dtype." if layout.is_vector else "The bytes themselves."
    return {
        **_about(layout.model),
        "contentType": OCTETS[1].decode(),
        "headers": {"type": "object", "properties": headers, "required": required},
        "payload": {"type": "string", "format": "binary", "description": content},
    }


def _json(event: type[Event]) -> Schema:
    return {
        **_about(event),
        "contentType": JSON[1].decode(),
        "headers": {"type": "object", "properties": _common_headers(event, JSON[1])},
        "payload": {"$ref": f"./json/{file_name(event)}"},
    }


def _tombstone(event: type[Event]) -> Schema:
    return {**_about(event), "payload": {"type": "null", "description": "An empty value."}}


def _about(event: type[Event]) -> Schema:
    about: Schema = {
        "name": event.type_name(),
        "title": event.__name__,
        "summary": " ".join((event.__doc__ or "").strip().split("\n\n")[0].split()),
    }
    if event.KEY is not None:
        key = _as_text(event, event.KEY, kind_of(event, event.KEY))
        about["bindings"] = {"kafka": {"key": key, **_BINDING}}
    return about


def _common_headers(event: type[Event], content_type: bytes) -> Schema:
    return {
        SPECVERSION[0]: {"type": "string", "const": SPECVERSION[1].decode()},
        "ce_type": {"type": "string", "const": event.type_name()},
        "content-type": {"type": "string", "const": content_type.decode()},
    }


def _as_text(event: type[Event], field: str, kind: type) -> Schema:
    """A field in a header or key: always text, and never null, because a missing field is left out."""
    if kind in _AS_TEXT:
        return _AS_TEXT[kind]
    schema: Schema = object_schema(event)["properties"][field]
    alternatives: list[Schema] = schema.get("anyOf", [schema])
    return {name: alternatives[0][name] for name in alternatives[0] if name not in ("description", "default")}
