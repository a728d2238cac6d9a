"""The exported contract: the files in the repository match the code, and the code writes what they allow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from event_strategies import EVENTS, ROLE_OF
from hypothesis import given, settings
from hypothesis import strategies as st

import stream_cgzsl.schemas
from stream_cgzsl.schemas import ROLES, Event, InvalidEvent, decode, encode
from stream_cgzsl.schemas.export import documents, write
from stream_cgzsl.schemas.json_schemas import events, file_name
from stream_cgzsl.schemas.layout import TOMBSTONES

FOLDER = Path(stream_cgzsl.schemas.__file__).parent
DOCUMENTS = {path: json.loads(content) for path, content in documents().items()}
ASYNCAPI = DOCUMENTS["asyncapi.json"]
VALIDATORS = {
    event: jsonschema.Draft202012Validator(
        DOCUMENTS[f"json/{file_name(event)}"], format_checker=jsonschema.FormatChecker()
    )
    for event in events()
}


def test_what_is_checked_in_is_what_is_exported() -> None:
    """After an intended change: `stream-cgzsl schemas export schemas`, and review the difference."""
    there = {
        path.relative_to(FOLDER).as_posix(): path.read_bytes()
        for path in (FOLDER / "asyncapi.json", *(FOLDER / "json").iterdir())
    }
    assert there == documents()


def test_write_makes_the_folder_and_every_file(tmp_path: Path) -> None:
    written = write(tmp_path / "new")
    assert {path.relative_to(tmp_path / "new").as_posix(): path.read_bytes() for path in written} == documents()


def test_every_event_with_a_json_form_has_a_schema() -> None:
    assert {event for event in EVENTS if event not in TOMBSTONES} == set(VALIDATORS)


@pytest.mark.parametrize("event", VALIDATORS, ids=lambda event: event.__name__)
def test_a_schema_is_a_json_schema(event: type[Event]) -> None:
    jsonschema.Draft202012Validator.check_schema(VALIDATORS[event].schema)


@pytest.mark.parametrize("event", VALIDATORS, ids=lambda event: event.__name__)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_every_json_record_we_write_fits_its_schema(event: type[Event], data: st.DataObject) -> None:
    VALIDATORS[event].validate(json.loads(encode(data.draw(EVENTS[event]), "json").value or b""))


_small = st.none() | st.booleans() | st.integers() | st.floats(-2, 2) | st.sampled_from(["", "a", "0" * 64, "AAAA"])


@pytest.mark.parametrize("event", VALIDATORS, ids=lambda event: event.__name__)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_json_record_we_read_fits_its_schema(event: type[Event], data: st.DataObject) -> None:
    """Valid objects with some fields replaced: what the decoder still accepts, the schema allows."""
    document = json.loads(encode(data.draw(EVENTS[event]), "json").value or b"")
    for name in data.draw(st.lists(st.sampled_from(sorted(document)), max_size=2, unique=True)):
        document[name] = data.draw(_small | st.lists(_small, max_size=3) | st.dictionaries(st.text(max_size=3), _small))
    try:
        decode(ROLE_OF[event], None, json.dumps(document).encode())
    except InvalidEvent:
        return
    VALIDATORS[event].validate(document)


# ---- AsyncAPI


def at(pointer: str) -> Any:
    node = ASYNCAPI
    for part in pointer.removeprefix("#/").split("/"):
        node = node[part]
    return node


def references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [found for item in node for found in references(item)]
    if isinstance(node, dict):
        own = [node["$ref"]] if "$ref" in node else []
        return own + [found for item in node.values() for found in references(item)]
    return []


def test_every_reference_leads_somewhere() -> None:
    internal = [found for found in references(ASYNCAPI) if found.startswith("#")]
    files = {found.removeprefix("./") for found in references(ASYNCAPI) if not found.startswith("#")}
    assert [found for found in internal if not at(found)] == []
    assert files == set(DOCUMENTS) - {"asyncapi.json"}


def test_every_topic_is_a_channel_with_one_operation() -> None:
    assert {name: channel["address"] for name, channel in ASYNCAPI["channels"].items()} == {
        name: "{prefix}." + name for name in ROLES
    }
    operations = ASYNCAPI["operations"].values()
    assert {operation["channel"]["$ref"].rpartition("/")[2]: operation["action"] for operation in operations} == {
        role.name: "receive" if role.input else "send" for role in ROLES.values()
    }


@pytest.mark.parametrize("encoding", ["binary", "json"])
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_record_fits_its_message(event: type[Event], encoding: Any, data: st.DataObject) -> None:
    """Headers and key, as texts; a key of raw bytes and a missing one have nothing to check."""
    record = encode(data.draw(EVENTS[event]), encoding)
    name = event.TYPE.removeprefix("cgzsl.")
    if event not in TOMBSTONES:
        name += ".binary" if encoding == "binary" and event.PAYLOAD else ".json"
    channel = ASYNCAPI["channels"][ROLE_OF[event]]
    message = at(channel["messages"][name]["$ref"])
    headers = {header: content.decode() for header, content in record.headers}
    jsonschema.validate(headers, {**message.get("headers", {}), "additionalProperties": False})
    key = message.get("bindings", {}).get("kafka", {}).get("key")
    if record.key is not None and key is not None and key.get("format") != "binary":
        jsonschema.validate(record.key.decode(), key)
    assert (record.key is None) or key is not None
