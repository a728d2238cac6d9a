"""Avro with Confluent's framing: read with the schema that the registry has."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from schema_registry import SchemaRegistry, framed

from stream_cgzsl.bus import Record
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.schemas import Decoder, Event, Feature, InvalidEvent, decode_with

fastavro = pytest.importorskip("fastavro", reason="the extra stream-cgzsl[avro] is not installed")

FEATURE = {
    "type": "record",
    "name": "Feature",
    "fields": [
        {"name": "class_id", "type": "string"},
        {"name": "vector", "type": {"type": "array", "items": "float"}},
        {"name": "id", "type": ["null", "string"], "default": None},
        {"name": "time", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
    ],
}
CONTENT = {"class_id": "zebra", "vector": [0.5, 1.0], "id": "7", "time": datetime(2025, 1, 31, tzinfo=UTC)}


def written(schema: Any, content: Any) -> bytes:
    data = io.BytesIO()
    fastavro.schemaless_writer(data, schema, content)
    return data.getvalue()


def read(value: bytes) -> Event:
    from stream_cgzsl.bus.confluent.avro import decode

    return decode_with(Decoder("avro", decode), "features", Record("t", 0, 0, 0, None, value, ()))


def refused(value: bytes) -> str:
    with pytest.raises(InvalidEvent) as caught:
        read(value)
    return f"{caught.value.reason}: {caught.value.found}"


def test_a_record_becomes_an_event_and_its_schema_is_asked_for_once(schemas: SchemaRegistry) -> None:
    schemas.add(7, FEATURE)
    for _ in range(3):
        assert read(framed(7, written(FEATURE, CONTENT))) == Feature(
            **{**CONTENT, "vector": np.array([0.5, 1], np.float32)}
        )
    assert schemas.asked == ["/schemas/ids/7"]


def test_a_schema_may_refer_to_others(schemas: SchemaRegistry) -> None:
    vector = {"type": "record", "name": "my.Place", "fields": [{"name": "x", "type": "int"}]}
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "place", "type": "my.Place"}]}
    schemas.add(7, outer, references=[schemas.add_subject("my.Place", vector)])
    from stream_cgzsl.bus.confluent.avro import decode

    whole = {"type": "record", "name": "Outer", "fields": [{"name": "place", "type": vector}]}
    assert decode(None, framed(7, written(whole, {"place": {"x": 3}})), ()) == {"place": {"x": 3}}


def test_what_is_wrong_with_a_record_refuses_it(schemas: SchemaRegistry) -> None:
    good = written(FEATURE, CONTENT)
    schemas.add(7, FEATURE)
    schemas.add(8, '"string"')
    schemas.add(9, "syntax = 'proto3';", "PROTOBUF")
    text_vector = {**FEATURE, "fields": [FEATURE["fields"][0], {"name": "vector", "type": "string"}]}  # type: ignore[index]
    schemas.add(10, text_vector)
    more = {**FEATURE, "fields": [*FEATURE["fields"], {"name": "camera", "type": "string"}]}  # type: ignore[misc]
    schemas.add(11, more)
    assert "undecodable: the value begins with 7b7d, and not with 00" in refused(b"{}")
    assert "undecodable: the value begins with 0000, and not with 00 and a schema's id" in refused(b"\0\0")
    assert "has no schema 6" in refused(framed(6, good))
    assert refused(framed(7, good[:-3])).startswith("undecodable: ")
    assert "1 bytes are left after the fields" in refused(framed(7, good + b"x"))
    assert "schema 8 is not of a record, but of a str" in refused(framed(8, written("string", "x")))
    assert "its schema is PROTOBUF, and this decoder reads Avro" in refused(framed(9, good))
    wrong = refused(framed(10, written(text_vector, {"class_id": "a", "vector": "1 2"})))
    assert wrong == "invalid-field: vector: a non-empty flat list of numbers is expected"
    extra = refused(framed(11, written(more, {**CONTENT, "camera": "3"})))
    assert extra == "invalid-field: camera: Extra inputs are not permitted"


def test_a_registry_that_fails_refuses_no_record(schemas: SchemaRegistry) -> None:
    schemas.add(7, FEATURE)
    schemas.failing = 503
    with pytest.raises(BusUnavailable, match="answered 503"):
        read(framed(7, written(FEATURE, CONTENT)))
    schemas.failing = None
    assert isinstance(read(framed(7, written(FEATURE, CONTENT))), Feature)
