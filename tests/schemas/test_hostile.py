"""For any bytes, a decoder returns a valid event or raises InvalidEvent, whose message fits a log line."""

from __future__ import annotations

import json

import pytest
from event_strategies import EVENTS, ROLE_OF
from hostile_cases import CASES, CHUNK, F4, SHA, Case, vector
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stream_cgzsl.schemas import MAX_BYTES, ROLES, Encoding, Event, Headers, InvalidEvent, Message, decode, encode
from stream_cgzsl.schemas.errors import REASONS
from stream_cgzsl.schemas.layout import LAYOUTS, ROLE_DECODERS

pytestmark = pytest.mark.slow


def refusal(role: str, key: bytes | None, value: bytes | None, headers: Headers) -> InvalidEvent | Event:
    """What the decoder makes of a record, with the promises about messages checked."""
    try:
        return decode(role, key, value, headers)
    except InvalidEvent as error:
        assert error.reason in REASONS
        line = error.at("cgzsl.features", 3, 17)
        assert line.isprintable()
        assert len(line) < 700
        assert line == (
            f"cgzsl.features/3 offset 17: {error.reason}: {error.found}; expected {error.expected}. {error.advice}"
        )
        return error


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.reason}-{case.label}".replace(" ", "-"))
def test_a_hostile_record_is_refused_for_its_reason(case: Case) -> None:
    error = refusal(case.role, case.key, case.value, case.headers)
    assert isinstance(error, InvalidEvent)
    assert error.reason == case.reason


def test_every_reason_has_a_case() -> None:
    assert {case.reason for case in CASES} == set(REASONS)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            Case("", "", "features", b"c", vector(1, 2)[:-1], F4),
            "wrong-length: the value has 7 bytes; expected a whole, positive number of 4-byte numbers (float32). "
            "Send the vector's bytes unchanged, or set ce_dtype to their number format.",
        ),
        (
            Case("", "", "features", b"a", b'{"class_id":"b\\u202e","vector":[1]}'),
            "key-mismatch: the key is 'a' and class_id is 'b\\u202e'; expected the same. Send one of them.",
        ),
        (
            Case("", "", "control", None, b'{"type":"cgzsl.boundary.v2"}'),
            "unknown-version: the type is 'cgzsl.boundary.v2'; expected cgzsl.boundary.v1 or cgzsl.rollback.v1. "
            "Upgrade this worker, or send the type of this topic.",
        ),
        (
            Case("", "", "features", b"zebra", b'{"vector":[1],"label":"zebra"}'),
            "invalid-field: label: Extra inputs are not permitted; expected a valid cgzsl.feature.v1. "
            "See the topic's JSON Schema (stream-cgzsl schemas export).",
        ),
    ],
)
def test_a_message_says_what_was_found_what_is_expected_and_what_to_do(case: Case, message: str) -> None:
    assert str(refusal(case.role, case.key, case.value, case.headers)) == message


# ---- any bytes at all


_ours = sorted({header for decoder in ROLE_DECODERS.values() for header in decoder.headers})
_contents = st.binary(max_size=40) | st.sampled_from(
    [b"1.0", b"float32", b"float16", b"application/octet-stream", b"application/json", b"1", b"true", b"-0.5", b"nan"]
    + [layout.model.type_name().encode() for layout in LAYOUTS.values()]
)
_headers = st.lists(st.tuples(st.sampled_from(_ours) | st.text(max_size=5), _contents), max_size=9).map(tuple)


def check(role: str, message: Message, encodings: tuple[Encoding, ...] = ("binary", "json")) -> None:
    """The whole promise: an error as above, or an event that can be written and read again."""
    found = refusal(role, message.key, message.value, message.headers)
    if isinstance(found, Event):
        for encoding in encodings:
            again = encode(found, encoding)
            assert decode(role, again.key, again.value, again.headers) == found


@pytest.mark.parametrize("role", ROLES)
@settings(max_examples=60, deadline=None)
@given(key=st.none() | st.binary(max_size=20), value=st.none() | st.binary(max_size=60), headers=_headers)
@example(key=b"k", value=b"\x00\x00\x80\x7f", headers=(("ce_dtype", b"float32"),))
def test_any_bytes(role: str, key: bytes | None, value: bytes | None, headers: Headers) -> None:
    check(role, Message(key, value, headers))


@st.composite
def damaged(draw: st.DrawFn, message: Message) -> Message:
    """A good record after one to three accidents."""
    key, value, headers = message.key, message.value or b"", list(message.headers)
    for _ in range(draw(st.integers(1, 3))):
        accident = draw(st.sampled_from(["cut", "flip", "insert", "key", "drop", "repeat", "content", "name"]))
        at = draw(st.integers(0, max(0, len(value) - 1)))
        which = draw(st.integers(0, max(0, len(headers) - 1)))
        if accident == "cut":
            value = value[:at]
        elif accident == "flip" and value:
            value = value[:at] + bytes([value[at] ^ draw(st.integers(1, 255))]) + value[at + 1 :]
        elif accident == "insert":
            value = value[:at] + draw(st.binary(min_size=1, max_size=8)) + value[at:]
        elif accident == "key":
            key = draw(st.none() | st.binary(max_size=8))
        elif headers and accident == "drop":
            del headers[which]
        elif headers and accident == "repeat":
            headers.append(headers[which])
        elif headers and accident == "content":
            headers[which] = (headers[which][0], draw(_contents))
        elif headers and accident == "name":
            headers[which] = (draw(st.sampled_from(_ours)), headers[which][1])
    return Message(key, value, tuple(headers))


@pytest.mark.parametrize("encoding", ["binary", "json"])
@pytest.mark.parametrize("model", EVENTS, ids=lambda model: model.__name__)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_damage_to_a_good_record(model: type[Event], encoding: Encoding, data: st.DataObject) -> None:
    message = encode(data.draw(EVENTS[model]), encoding)
    check(ROLE_OF[model], data.draw(damaged(message)))


# ---- any JSON at all, with the right names in it


_numbers = st.integers() | st.floats() | st.sampled_from([0, 1, -1, 2**63, 10**4000, -0.0, 1e39, 65520.0])
_values = st.recursive(
    st.none() | st.booleans() | _numbers | st.text(max_size=8) | st.sampled_from(["float32", SHA, "AAAA", "0"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(_numbers, max_size=4)
        | st.dictionaries(
            st.text(max_size=4) | st.sampled_from(["0", "01", "features", "start", "end"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("model", [layout.model for layout in LAYOUTS.values()], ids=lambda model: model.__name__)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_object_with_an_events_fields(model: type[Event], data: st.DataObject) -> None:
    names = st.sampled_from(["type", "dtype", *model.model_fields]) | st.text(max_size=3)
    document = data.draw(st.dictionaries(names, _values, max_size=6))
    if data.draw(st.booleans()):
        document["type"] = model.type_name()
    key = data.draw(st.none() | st.sampled_from([b"0", b"c"]))
    check(ROLE_OF[model], Message(key, json.dumps(document).encode(), ()))


@pytest.mark.parametrize(
    ("role", "headers", "fill"),
    [
        ("control", (), b"["),
        ("windows", (), b"{"),
        ("predictions", (), b'"'),
        ("evaluations", (), b"\xff"),
        ("samples", (), b"9"),
        ("features", F4, b"\x00"),
        ("state", (*CHUNK, ("ce_window", b"1")), b" "),
    ],
)
def test_four_megabytes_of_anything(role: str, headers: Headers, fill: bytes) -> None:
    """As JSON it is refused; as a vector and as bytes it is valid."""
    message = Message(b"0", fill * MAX_BYTES, headers)
    check(role, message, ("binary",))  # in JSON the event would be too large
    assert isinstance(refusal(role, *message[:3]), Event if headers else InvalidEvent)
