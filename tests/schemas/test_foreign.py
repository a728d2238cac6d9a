"""Records in other formats: what a decoder gives becomes an event, what it trips over is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from stream_cgzsl.bus import Record
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.schemas import (
    MAX_BYTES,
    Attribute,
    BulkReader,
    Decoder,
    Event,
    Feature,
    InvalidEvent,
    Retirement,
    Sample,
    decode_with,
    encode,
)

VECTOR = np.array([0.5, 1], np.float32)


def reads(result: Any) -> Decoder:
    """A decoder that gives, or raises, always the same."""

    def read(*_: object) -> Any:
        if isinstance(result, BaseException):
            raise result
        return result

    return Decoder("my:decoder", read)


def record(value: bytes | None = b"x", key: bytes | None = b"zebra", headers: Any = ()) -> Record:
    return Record("t", 0, 0, 0, key, value, headers)


def decoded(result: Any, role: str = "features", **given: Any) -> Event:
    return decode_with(reads(result), role, record(**given))


def refused(result: Any, role: str = "features", **given: Any) -> InvalidEvent:
    with pytest.raises(InvalidEvent) as caught:
        decoded(result, role, **given)
    return caught.value


@pytest.mark.parametrize("vector", [[0.5, 1], VECTOR, np.array([0.5, 1])], ids=["list", "float32", "float64"])
def test_fields_become_the_event_of_the_role(vector: Any) -> None:
    assert decoded({"class_id": "okapi", "vector": vector, "id": "7"}) == Feature(
        class_id="okapi", vector=VECTOR, id="7"
    )
    assert decoded({"vector": vector, "name": "Zebra"}, "attributes") == Attribute(
        class_id="zebra", vector=VECTOR, name="Zebra"
    )
    assert decoded({"request_id": "r", "vector": vector}, "samples", key=None) == Sample(request_id="r", vector=VECTOR)


def test_events_of_the_role_are_taken_as_they_are() -> None:
    for role, event in (("features", Feature(class_id="a", vector=VECTOR)), ("attributes", Retirement(class_id="a"))):
        assert decoded(event, role) is event


def test_the_decoder_gets_key_value_and_headers() -> None:
    def read(key: bytes | None, value: bytes, headers: Any) -> dict[str, Any]:
        return {"class_id": key and key.decode(), "id": dict(headers)["id"].decode(), "vector": json.loads(value)}

    read_by = Decoder("my:decoder", read)
    assert decode_with(read_by, "features", record(b"[0.5, 1]", b"a", (("id", b"7"),))) == Feature(
        class_id="a", vector=VECTOR, id="7"
    )


@pytest.mark.parametrize(
    ("result", "reason", "found"),
    [
        (ValueError("no magic byte"), "undecodable", "no magic byte"),
        (KeyError("vector"), "undecodable", "KeyError: 'vector'"),
        (RecursionError("deep"), "undecodable", "RecursionError: deep"),
        (None, "undecodable", "it gave a NoneType and not a Feature or a dict"),
        (Sample(request_id="r", vector=VECTOR), "undecodable", "it gave a Sample and not a Feature or a dict"),
        ({"vector": [1.0], "speed": 3}, "invalid-field", "speed: Extra inputs are not permitted"),
        ({"class_id": "a"}, "invalid-field", "vector: Field required"),
        ({"vector": ["1"]}, "invalid-field", "vector: a non-empty flat list of numbers is expected"),
        ({"vector": np.array([np.nan])}, "not-finite", "vector: every number must be finite"),
        ({"class_id": "a\n", "vector": [1.0]}, "invalid-field", "class_id: String should match"),
        (InvalidEvent("wrong-dtype", "mine", "", ""), "wrong-dtype", "mine"),
        (InvalidEvent("", "mine", "yours", ""), "undecodable", "InvalidEvent: : mine; expected yours"),
    ],
)
def test_what_cannot_be_read_is_refused(result: Any, reason: str, found: str) -> None:
    error = refused(result)
    assert (error.reason, error.found[: len(found)]) == (reason, found)


def test_what_cannot_be_read_now_is_not_refused() -> None:
    for error in (ConnectionRefusedError("no registry"), BusUnavailable("no registry")):
        with pytest.raises(BusUnavailable, match="no registry"):
            decoded(error)


def test_empty_and_oversized_values_never_reach_the_decoder() -> None:
    never = AssertionError("called")
    assert decoded(never, "attributes", value=b"") == Retirement(class_id="zebra")
    assert refused(never, "features", value=None).reason == "empty-value"
    assert refused(never, "features", value=bytes(MAX_BYTES + 1)).reason == "too-large"


def test_many_records_go_through_the_decoder_too() -> None:
    """Also those in our own format, which are then not of this topic's."""
    ours = encode(Feature(class_id="a", vector=VECTOR))
    records = [record(b"[1, 2]"), record(ours.value, ours.key, ours.headers), record(b"[3, 4]", b"b")]
    decoder = Decoder("my:decoder", lambda _, value, __: {"vector": json.loads(value)})
    batch = BulkReader("features", 2, decoder=decoder).read_all(records)
    assert [event and event.key for event in batch.events] == ["zebra", None, "b"]
    assert batch.rows.tolist() == [[1, 2], [3, 4]]
    assert {place: error.reason for place, error in batch.refused.items()} == {1: "undecodable"}
