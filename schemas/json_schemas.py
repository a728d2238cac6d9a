"""The JSON Schemas of all events that can be sent as JSON objects."""

from __future__ import annotations

from typing import Any

from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.roles import ROLES
from stream_cgzsl.schemas.vector import DTYPES

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def events() -> list[type[Event]]:
    """All events with a JSON form, in the order of the topic table. Tombstones have none: their value is empty."""
    return [event for role in ROLES.values() for event in role.events]


def file_name(event: type[Event]) -> str:
    return f"{event.TYPE.removeprefix('cgzsl.')}.json"


def object_schema(event: type[Event]) -> Schema:
    """The schema of this event as a JSON record: the model, and the fields that only exist on the wire."""
    model = _closed(event.model_json_schema())
    properties: Schema = {"type": {"const": event.type_name(), "description": "Which event this is, and its version."}}
    if event.PAYLOAD == "vector":
        dtypes = list(DTYPES)
        described = "The vector's number format."
        properties["dtype"] = {"enum": dtypes, "default": dtypes[0], "description": described}
    properties |= model["properties"]
    required = [name for name in model.get("required", []) if name != event.KEY]
    if event.KEY is not None:
        properties[event.KEY]["description"] = "The record's key. May be left out here when the record has it."
    if not _is_default(event):
        required.insert(0, "type")
    schema: Schema = {
        "$schema": DIALECT,
        "$id": f"urn:cgzsl:{event.TYPE.removeprefix('cgzsl.')}:v{event.VERSION}",
        "title": event.__name__,
        "description": model["description"],
        "type": "object",
        "properties": properties,
        "required": required,
    }
    if "additionalProperties" in model:  # else readers ignore fields they do not know
        schema["additionalProperties"] = model["additionalProperties"]
    if "$defs" in model:
        schema["$defs"] = model["$defs"]
    return schema


def _is_default(event: type[Event]) -> bool:
    return any(role.events[0] is event for role in ROLES.values())


def _closed(node: Any, names: bool = False) -> Any:
    """pydantic's schema without its generated titles, and with mappings closed to keys of other patterns.

    `names` means that the keys of `node` are field names, not keywords of JSON Schema.
    """
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _closed(item, names=not names and key in ("properties", "patternProperties", "$defs"))
        for key, item in node.items()
        if names or key != "title"
    }
    if not names and "patternProperties" in kept:
        kept["additionalProperties"] = False
    return kept
