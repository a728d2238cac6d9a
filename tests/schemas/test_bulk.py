"""Reading many records at once gives what reading each alone gives."""

from __future__ import annotations

import numpy as np
import pytest
from event_strategies import EVENTS
from hostile_cases import CASES
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_cgzsl.schemas import BulkReader, Event, Feature, Message, Sample, VectorEvent, decode, encode

ROW = np.array([0.5, 0.25, 3.0], np.float32)
HEADERS = encode(Feature(class_id="c", vector=ROW)).headers


def assert_same(role: str, messages: list[Message], numbers: int) -> int:
    """Compares, and returns how many records were read together."""
    read = BulkReader(role, numbers).read(messages)
    assert len(read.events) == len(messages)
    for message, plain in zip(messages, read.events, strict=True):
        if plain is None:
            continue
        event = decode(role, message.key, message.value, message.headers)  # raises where it should have been left alone
        assert isinstance(event, VectorEvent)
        assert plain.key == getattr(event, event.KEY or "")
        assert plain.id == event.id
        assert read.rows[plain.row].tobytes() == event.vector.astype(np.float32).tobytes()
    return sum(plain is not None for plain in read.events)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_events(data: st.DataObject) -> None:
    model, role = data.draw(st.sampled_from([(Feature, "features"), (Sample, "samples")]))
    events: list[Event] = data.draw(st.lists(EVENTS[model], max_size=5))
    encodings = [data.draw(st.sampled_from(["binary", "json"])) for _ in events]
    messages = [encode(event, encoding) for event, encoding in zip(events, encodings, strict=True)]
    assert_same(role, messages, data.draw(st.integers(1, 40)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.role}: {case.label}")
def test_hostile_records_are_left_to_the_one_who_can_say_why(case: object) -> None:
    role, message = case.role, Message(case.key, case.value, case.headers)  # type: ignore[attr-defined]
    if role in ("features", "samples", "holdout", "attributes"):
        for numbers in (1, 2, 3, 4):
            assert BulkReader(role, numbers).read([message]).events == [None]


@pytest.mark.parametrize(
    "more",
    [
        (("ce_time", b"2025-01-31T12:00:00Z"), ("ce_time", b"2025-01-31T12:00:00Z")),
        (("ce_id", b"a"), ("ce_id", b"b")),
        (("ce_dtype", b"float16"),),
        (("ce_type", b"cgzsl.feature.v1"),),
        (("content-type", b"application/json"),),
        (("ce_time", b"yesterday"),),
        (("ce_time", b"2025-13-31T12:00:00Z"),),
        (("ce_id", b""),),
        (("ce_id", b"\xff"),),
        (("ce_id", b"a\nb"),),
        (("ce_id", b"x" * 257),),
    ],
    ids=str,
)
def test_headers_that_are_wrong_or_twice_there_are_left_alone(more: tuple[tuple[str, bytes], ...]) -> None:
    message = Message(b"c", ROW.tobytes(), HEADERS + more)
    assert BulkReader("features", 3).read([message]).events == [None]


def test_what_our_encoder_writes_is_read_together() -> None:
    messages = [encode(Feature(class_id=f"c{n}", vector=ROW * n, id=f"id {n}")) for n in range(5)]
    foreign = messages[0]._replace(headers=(*messages[0].headers, ("trace", b"\xff")))
    assert assert_same("features", [*messages, foreign], 3) == 6


def test_float16_becomes_float32_and_formats_are_not_mixed() -> None:
    half = encode(Feature(class_id="c", vector=ROW.astype(np.float16)))
    whole = encode(Feature(class_id="c", vector=ROW))
    assert assert_same("features", [half, half], 3) == 2
    assert assert_same("features", [half, whole, half], 3) == 2
    assert BulkReader("features", 3).read([half]).rows.dtype == np.float32


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1.0])
def test_one_bad_number_takes_back_one_record(bad: float) -> None:
    messages = [encode(Feature(class_id="c", vector=ROW)) for _ in range(3)]
    numbers = ROW.copy()
    numbers[1] = bad
    messages[1] = messages[1]._replace(value=numbers.tobytes())
    events = BulkReader("features", 3, least=0.0).read(messages).events
    assert [event is None for event in events] == [False, True, False]
