"""Protobuf records: `--decoder stream_cgzsl.bus.confluent.protobuf:decode`.

The registry gives the compiled form of a schema, so no compiler is needed here.
"""

from __future__ import annotations

import base64
import importlib
from datetime import UTC
from functools import lru_cache
from typing import Any

from stream_cgzsl.bus.confluent.framing import unframe
from stream_cgzsl.bus.confluent.registry import Registry, Schema, registry
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Headers

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError as error:
    raise UsageError("reading Protobuf needs its library: pip install 'stream-cgzsl[protobuf]'") from error

_GOOGLE = {
    f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2"
    for name in ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
}
_SERIALIZED = "serialized"
_DEEPEST = 100


def decode(_key: bytes | None, value: bytes, _headers: Headers) -> dict[str, Any]:
    """The fields of the message that are set, under the names of its schema. Raises as a decoder does."""
    id, payload = unframe(value)
    place, payload = _place(payload)
    message = _message_class(registry(), id, place)()
    message.ParseFromString(payload)
    return {field.name: _plain(content) for field, content in message.ListFields()}


def _plain(content: Any) -> Any:
    if hasattr(content, "ToDatetime"):
        return content.ToDatetime(UTC)
    return list(content) if hasattr(content, "MergeFrom") and hasattr(content, "append") else content


def _place(payload: bytes) -> tuple[tuple[int, ...], bytes]:
    """Which message of the schema follows: its index, then those of messages inside it. A single 0 is the first."""
    count, payload = _number(payload)
    if not 0 <= count <= _DEEPEST:
        raise ValueError(f"the place of the message in its schema has {count} numbers")
    place = []
    for _ in range(count):
        index, payload = _number(payload)
        place.append(index)
    return tuple(place) or (0,), payload


def _number(payload: bytes) -> tuple[int, bytes]:
    """A zigzag number of variable length, and what follows it."""
    number = 0
    for length, byte in enumerate(payload[:5]):
        number |= (byte & 0x7F) << (7 * length)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), payload[length + 1 :]
    raise ValueError("the value ends before its message begins")


@lru_cache(maxsize=1000)
def _message_class(source: Registry, id: int, place: tuple[int, ...]) -> Any:
    pool = descriptor_pool.DescriptorPool()
    file = _add(source, source.schema(id, _SERIALIZED), f"schema-{id}.proto", pool, set())
    names, messages = [file.package] if file.package else [], file.message_type
    for index in place:
        if not 0 <= index < len(messages):
            raise ValueError(f"schema {id} has no message at {'.'.join(map(str, place))}")
        names.append(messages[index].name)
        messages = messages[index].nested_type
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(".".join(names)))


def _add(source: Registry, schema: Schema, name: str, pool: Any, added: set[str]) -> Any:
    """Adds a schema to the pool, after everything it needs. Returns its description."""
    if schema.kind != "PROTOBUF":
        raise ValueError(f"its schema is {schema.kind}, and this decoder reads Protobuf")
    added.add(name)
    file = descriptor_pb2.FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(schema.text, validate=True))
    except Exception as error:  # what it gave instead is for no decoder to guess
        raise UsageError(
            f"the schema registry {source.url} does not give the compiled form of Protobuf schemas "
            "(format=serialized); write a decoder of your own with your compiled classes (docs/events.md)"
        ) from error
    file.name = name
    for reference in schema.references:
        if reference.name not in added:
            _add(source, source.referenced(reference, _SERIALIZED), reference.name, pool, added)
    for needed in file.dependency:
        if needed in _GOOGLE and needed not in added:
            added.add(needed)
            pool.AddSerializedFile(importlib.import_module(_GOOGLE[needed]).DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return file
