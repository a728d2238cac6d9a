"""Protobuf with Confluent's framing: read with the compiled schema that the registry has."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from schema_registry import SchemaRegistry, framed

from stream_cgzsl.bus import Record
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Decoder, Event, Feature, InvalidEvent, decode_with

pytest.importorskip("google.protobuf", reason="the extra stream-cgzsl[protobuf] is not installed")

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2, wrappers_pb2

Field = descriptor_pb2.FieldDescriptorProto


def field(name: str, number: int, kind: int, repeated: bool = False, of: str = "") -> Any:
    label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
    return Field(name=name, number=number, type=kind, label=label, type_name=of or None)  # type: ignore[arg-type]


def feature_file() -> Any:
    """package my; message Other {} message Feature { ...; message Inner { string class_id = 1; } }"""
    file = descriptor_pb2.FileDescriptorProto(name="written.proto", package="my", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="Other")
    feature = file.message_type.add(name="Feature")
    feature.field.extend(
        [
            field("class_id", 1, Field.TYPE_STRING),
            field("vector", 2, Field.TYPE_FLOAT, repeated=True),
            field("id", 3, Field.TYPE_STRING),
            field("time", 4, Field.TYPE_MESSAGE, of=".google.protobuf.Timestamp"),
        ]
    )
    feature.nested_type.add(name="Inner").field.append(field("class_id", 1, Field.TYPE_STRING))
    return file


def text(file: Any) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


def message(file: Any, name: str, **fields: Any) -> bytes:
    pool = descriptor_pool.DescriptorPool()
    for needed in (timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(needed.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    data: bytes = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))(**fields).SerializeToString()
    return data


FEATURE = message(feature_file(), "my.Feature", class_id="zebra", vector=[0.5, 1], id="7", time={"seconds": 1738281600})
SECOND = b"\x02\x02"
"""One index, 1: the second message of the schema."""


def read(value: bytes) -> Event:
    from stream_cgzsl.bus.confluent.protobuf import decode

    return decode_with(Decoder("protobuf", decode), "features", Record("t", 0, 0, 0, None, value, ()))


def refused(value: bytes) -> str:
    with pytest.raises(InvalidEvent) as caught:
        read(value)
    return f"{caught.value.reason}: {caught.value.found}"


def test_a_message_becomes_an_event_and_its_schema_is_asked_for_once(schemas: SchemaRegistry) -> None:
    schemas.add(7, text(feature_file()), "PROTOBUF")
    for _ in range(3):
        assert read(framed(7, SECOND + FEATURE)) == Feature(
            class_id="zebra", vector=np.array([0.5, 1], np.float32), id="7", time=datetime(2025, 1, 31, tzinfo=UTC)
        )
    assert schemas.asked == ["/schemas/ids/7?format=serialized"]


def test_a_schema_may_refer_to_others_and_messages_be_inside_others(schemas: SchemaRegistry) -> None:
    from stream_cgzsl.bus.confluent.protobuf import decode

    other = descriptor_pb2.FileDescriptorProto(name="ignored", package="shared", syntax="proto3")
    other.message_type.add(name="Name").field.append(field("text", 1, Field.TYPE_STRING))
    file = feature_file()
    file.dependency.append("names.proto")
    file.message_type[1].nested_type[0].field.append(field("name", 2, Field.TYPE_MESSAGE, of=".shared.Name"))
    reference = {**schemas.add_subject("names", text(other), "PROTOBUF"), "name": "names.proto"}
    schemas.add(7, text(file), "PROTOBUF", [reference])
    found = decode(None, framed(7, b"\x04\x02\x00" + b"\x0a\x01a\x12\x03\x0a\x01b"), ())
    assert (found["class_id"], found["name"].text) == ("a", "b")


def test_what_is_wrong_with_a_message_refuses_it(schemas: SchemaRegistry) -> None:
    schemas.add(7, text(feature_file()), "PROTOBUF")
    schemas.add(8, '"string"')
    assert "and not with 00 and a schema's id" in refused(FEATURE)
    assert "has no schema 6" in refused(framed(6, SECOND + FEATURE))
    assert "its schema is AVRO, and this decoder reads Protobuf" in refused(framed(8, SECOND + FEATURE))
    assert "schema 7 has no message at 9" in refused(framed(7, b"\x02\x12" + FEATURE))
    assert "schema 7 has no message at 1.5" in refused(framed(7, b"\x04\x02\x0a" + FEATURE))
    assert "ends before its message begins" in refused(framed(7, b""))
    assert "the place of the message in its schema has" in refused(framed(7, b"\xff\xff\xff\xff\x0f"))
    assert refused(framed(7, SECOND + FEATURE[:-1])).startswith("undecodable: DecodeError: ")
    assert refused(framed(7, SECOND)) == "missing-key: the record has no key"
    assert refused(framed(7, b"\0")) == "missing-key: the record has no key"


def test_a_registry_without_compiled_schemas_is_no_fault_of_a_record(schemas: SchemaRegistry) -> None:
    schemas.add(7, 'syntax = "proto3"; message Feature {}', "PROTOBUF")
    with pytest.raises(UsageError, match=r"does not give the compiled form .* write a decoder of your own"):
        read(framed(7, SECOND + FEATURE))
