"""Every event survives both encodings, and the bytes are those of the contract."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from event_strategies import EVENTS, ROLE_OF
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_cgzsl.schemas import (
    Attribute,
    Boundary,
    DeadLetter,
    Encoding,
    Evaluation,
    Event,
    Feature,
    Holdout,
    Message,
    Projection,
    Retirement,
    Rollback,
    Sample,
    StateChunk,
    Withdrawal,
    decode,
    encode,
    foreign_headers,
)

NOON = datetime(2025, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC)
BOTH: tuple[Encoding, ...] = ("binary", "json")


def read(role: str, message: Message) -> Event:
    return decode(role, message.key, message.value, message.headers)


# ---- there and back


@pytest.mark.parametrize("encoding", BOTH)
@pytest.mark.parametrize("model", EVENTS, ids=lambda model: model.__name__)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_event_comes_back(model: type[Event], encoding: Encoding, data: st.DataObject) -> None:
    event = data.draw(EVENTS[model])
    assert read(ROLE_OF[model], encode(event, encoding)) == event


@pytest.mark.parametrize("encoding", BOTH)
@pytest.mark.parametrize("model", EVENTS, ids=lambda model: model.__name__)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_record_comes_back_bit_for_bit(model: type[Event], encoding: Encoding, data: st.DataObject) -> None:
    message = encode(data.draw(EVENTS[model]), encoding)
    assert encode(read(ROLE_OF[model], message), encoding) == message


@pytest.mark.parametrize("encoding", BOTH)
@pytest.mark.parametrize(("bits", "numbers"), [("<u4", "<f4"), ("<u2", "<f2")])
def test_the_bits_of_odd_numbers_survive(bits: str, numbers: str, encoding: Encoding) -> None:
    width = np.dtype(bits).itemsize * 8
    exponent = {32: 0x7F800000, 16: 0x7C00}[width]
    # zero, the smallest and largest subnormal and normal, one and its neighbour; then all of them negative
    smallest_normal = exponent & -exponent
    odd = [0, 1, smallest_normal - 1, smallest_normal, exponent - 1, 0x3F800000 >> (32 - width), 0x3C01]
    vector = np.array(odd + [1 << (width - 1) | pattern for pattern in odd], bits).view(numbers)
    event = read("samples", encode(Sample(request_id="r", vector=vector), encoding))
    assert isinstance(event, Sample)
    assert (event.vector.dtype, event.vector.tobytes()) == (vector.dtype, vector.tobytes())


def test_every_float16_survives_json() -> None:
    every = np.arange(2**16, dtype="<u2").view("<f2")
    finite = every[np.isfinite(every)]
    event = read("features", encode(Feature(class_id="c", vector=finite), "json"))
    assert isinstance(event, Feature)
    assert event.vector.tobytes() == finite.tobytes()


def test_a_binary_vector_is_a_view_of_the_value() -> None:
    message = encode(Feature(class_id="c", vector=np.ones(4, "<f4")))
    event = read("features", message)
    assert isinstance(event, Feature)
    assert np.shares_memory(event.vector, np.frombuffer(message.value or b"", "<f4"))


# ---- the bytes themselves: what producers in other languages rely on


def test_a_feature_in_binary() -> None:
    event = Feature(class_id="zebra", vector=np.array([1, -2], np.float32), id="img-7", time=NOON)
    assert encode(event) == Message(
        key=b"zebra",
        value=bytes.fromhex("0000803f000000c0"),
        headers=(
            ("ce_dtype", b"float32"),
            ("ce_dim", b"2"),
            ("ce_id", b"img-7"),
            ("ce_time", b"2025-01-31T12:00:00.250000Z"),
        ),
        timestamp_ms=1_738_324_800_250,
    )


def test_a_feature_in_json() -> None:
    event = Feature(class_id="zebra", vector=np.array([1, 0.1], np.float32), time=NOON)
    assert encode(event, "json") == Message(
        key=b"zebra",
        value=b'{"type":"cgzsl.feature.v1","dtype":"float32","vector":[1.0,0.10000000149011612],'
        b'"time":"2025-01-31T12:00:00.250000Z","class_id":"zebra"}',
        headers=(),
        timestamp_ms=1_738_324_800_250,
    )


def test_a_projection_in_binary() -> None:
    event = Projection(class_id="zebra", vector=np.array([1], np.float16), bias=-0.1, seen=True, generation=7)
    assert encode(event) == Message(
        key=b"zebra",
        value=bytes.fromhex("003c"),
        headers=(
            ("ce_dtype", b"float16"),
            ("ce_dim", b"1"),
            ("ce_bias", b"-0.1"),
            ("ce_seen", b"true"),
            ("ce_generation", b"7"),
        ),
    )


def test_a_projection_says_how_many_examples_its_class_has_had() -> None:
    event = Projection(class_id="zebra", vector=np.ones(1), bias=0.5, seen=False, generation=7, examples=0)
    message = encode(event)
    assert message.headers[-1] == ("ce_examples", b"0")
    assert read("projections", message) == event
    older = read("projections", message._replace(headers=message.headers[:-1]))
    assert older == event.model_copy(update={"examples": None})


def test_an_evaluation_from_before_accuracy_by_examples_is_read() -> None:
    value = b'{"type":"cgzsl.evaluation.v1","generation":1,"digest":"%b","samples":2,"per_class":{"a":0.5},"best":{}}'
    assert decode("evaluations", b"1", value % (b"0" * 64)) == Evaluation(
        generation=1, digest="0" * 64, samples=2, per_class={"a": 0.5}, by_examples={}
    )


def test_a_chunk_in_binary() -> None:
    assert encode(StateChunk(chunk=3, count=5, window=9, data=b"\xff\x00")) == Message(
        key=b"3",
        value=b"\xff\x00",
        headers=(("content-type", b"application/octet-stream"), ("ce_count", b"5"), ("ce_window", b"9")),
    )


def test_a_boundary_is_json_in_both_encodings() -> None:
    event = Boundary(cut={"features": {0: 12, 1: 7}})
    assert encode(event) == encode(event, "json")
    assert encode(event).value == b'{"type":"cgzsl.boundary.v1","reason":"boundary","cut":{"features":{"0":12,"1":7}}}'


@pytest.mark.parametrize("event", [Retirement(class_id="zebra"), Withdrawal(class_id="zebra")])
def test_a_tombstone_is_a_key_alone(event: Event) -> None:
    assert encode(event) == Message(b"zebra", None)


@pytest.mark.parametrize(
    ("time", "timestamp"),
    [
        (datetime(2025, 1, 1, 0, 0, 0, 999, tzinfo=UTC), 1_735_689_600_000),
        (datetime(2262, 4, 11, 23, 47, 16, 854_999, tzinfo=UTC), 9_223_372_036_854),
        (datetime(2025, 1, 1, 2, 0, 0, 1_000, tzinfo=timezone(timedelta(hours=2))), 1_735_689_600_001),
        (datetime(1969, 12, 31, tzinfo=UTC), 0),
    ],
)
def test_the_timestamp_is_the_time_in_whole_milliseconds(time: datetime, timestamp: int) -> None:
    assert encode(Sample(request_id="r", vector=np.ones(1), time=time)).timestamp_ms == timestamp


# ---- what producers may leave out


@pytest.mark.parametrize(
    ("role", "key", "value", "event"),
    [
        ("attributes", b"zebra", b'{"vector":[1,0.5]}', Attribute(class_id="zebra", vector=np.array([1, 0.5]))),
        ("attributes", None, b'{"class_id":"okapi","vector":[1]}', Attribute(class_id="okapi", vector=np.ones(1))),
        ("attributes", b"zebra", None, Retirement(class_id="zebra")),
        ("attributes", b"zebra", b"", Retirement(class_id="zebra")),
        ("features", "斑马".encode(), b'{"vector":[1]}', Feature(class_id="斑马", vector=np.ones(1))),
        (
            "features",
            b"zebra",
            b'{"vector":[1],"dtype":"float16","id":null}',
            Feature(class_id="zebra", vector=np.ones(1, np.float16)),
        ),
        ("holdout", b"zebra", b'{"vector":[1]}', Holdout(class_id="zebra", vector=np.ones(1))),
        ("samples", b"7", b' {"vector" : [1e0] } ', Sample(request_id="7", vector=np.ones(1))),
        ("control", None, b"{}", Boundary()),
        ("control", b"any", b'{"cut":{"features":{"0":3}}}', Boundary(cut={"features": {0: 3}})),
        ("control", None, b'{"type":"cgzsl.rollback.v1","to":3}', Rollback(to=3)),
    ],
)
def test_a_plain_json_record_needs_no_headers(role: str, key: bytes | None, value: bytes | None, event: Event) -> None:
    assert decode(role, key, value) == event


def test_a_binary_record_needs_its_dtype_only() -> None:
    event = decode("features", b"zebra", bytes(8), (("ce_dtype", b"float32"),))
    assert event == Feature(class_id="zebra", vector=np.zeros(2))


def test_json_takes_id_and_time_from_cloudevents_headers() -> None:
    headers = (("ce_id", b"img-7"), ("ce_source", b"/camera"), ("ce_time", b"2025-01-31T13:00:00.25+01:00"))
    event = decode("features", b"zebra", b'{"vector":[1]}', headers)
    assert event == Feature(class_id="zebra", vector=np.ones(1), id="img-7", time=NOON)


def test_the_object_takes_precedence_over_headers() -> None:
    event = decode("samples", b"r", b'{"vector":[1],"id":"inside"}', (("ce_id", b"outside"),))
    assert event == Sample(request_id="r", vector=np.ones(1), id="inside")


def test_a_null_header_is_no_header() -> None:
    headers = (("ce_dtype", b"float32"), ("ce_id", None), ("ce_dim", None))
    event = decode("features", b"zebra", bytes(4), headers)  # type: ignore[arg-type]
    assert event == Feature(class_id="zebra", vector=np.zeros(1))


def test_foreign_headers_may_repeat_and_contain_anything() -> None:
    headers = (("ce_dtype", b"float32"), ("trace", b"\xff"), ("trace", b""), ("ce_other", b"\xff"), ("ce_other", b""))
    assert decode("samples", b"r", bytes(4), headers) == Sample(request_id="r", vector=np.zeros(1))


def test_foreign_headers_are_those_we_do_not_write() -> None:
    message = encode(Sample(request_id="r", vector=np.ones(1), id="i", time=NOON))
    assert foreign_headers((("trace", b"1"), *message.headers, ("trace", b"2"))) == (("trace", b"1"), ("trace", b"2"))


@pytest.mark.parametrize("key", [None, b"", b"\xff\x00"])
def test_a_dead_letter_keeps_any_key_and_an_empty_value(key: bytes | None) -> None:
    letter = DeadLetter(
        key=key,
        data=b"",
        size=0,
        sha256="0" * 64,
        reason="empty-value",
        detail="",
        topic="cgzsl.features",
        partition=0,
        offset=4,
    )
    message = encode(letter)
    assert (message.key, message.value) == (key, b"")
    assert read("dead-letters", message) == letter
    assert decode("dead-letters", message.key, None, message.headers) == letter
