"""Avro records: `--decoder stream_cgzsl.bus.confluent.avro:decode`."""

from __future__ import annotations

import io
import json
from functools import lru_cache
from typing import Any

from stream_cgzsl.bus.confluent.framing import unframe
from stream_cgzsl.bus.confluent.registry import Registry, Schema, registry
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Headers

try:
    import fastavro
except ImportError as error:
    raise UsageError("reading Avro needs fastavro: pip install 'stream-cgzsl[avro]'") from error


def decode(_key: bytes | None, value: bytes, _headers: Headers) -> dict[str, Any]:
    """The fields of the record, under the names of its schema. Raises as a decoder does."""
    id, payload = unframe(value)
    schema = _parsed(registry(), id)
    rest = io.BytesIO(payload)
    found = fastavro.schemaless_reader(rest, schema, None)
    if rest.tell() != len(payload):
        raise ValueError(f"{len(payload) - rest.tell()} bytes are left after the fields of schema {id}")
    if not isinstance(found, dict):
        raise ValueError(f"schema {id} is not of a record, but of a {type(found).__name__}")
    return found


@lru_cache(maxsize=1000)
def _parsed(source: Registry, id: int) -> Any:
    return _parse(source, source.schema(id), {}, ())


def _parse(source: Registry, schema: Schema, named: dict[str, Any], above: tuple[str, ...]) -> Any:
    """Parses what a schema refers to, which adds to `named`, and then the schema."""
    if schema.kind != "AVRO":
        raise ValueError(f"its schema is {schema.kind}, and this decoder reads Avro")
    for reference in schema.references:
        if reference.name not in named and reference.name not in above:
            _parse(source, source.referenced(reference), named, (*above, reference.name))
    return fastavro.parse_schema(json.loads(schema.text), named_schemas=named)
