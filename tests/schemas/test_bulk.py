"""Reading many records at once gives what decoding each alone gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from event_strategies import EVENTS
from hostile_cases import CASES, Case
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_cgzsl.schemas import (
    Batch,
    BulkReader,
    Feature,
    Headers,
    InvalidEvent,
    Message,
    Sample,
    VectorEvent,
    decode,
    encode,
)

ROW = np.array([0.5, 0.25, 3.0], np.float32)
EXAMPLES = {"features": Feature(class_id="c", vector=ROW), "samples": Sample(request_id="r", vector=ROW)}
HEADERS = encode(Feature(class_id="c", vector=ROW)).headers
HOSTILE = [case for case in CASES if case.role in EXAMPLES]


def check(event: VectorEvent) -> None:
    if event.vector.size != 3 or event.vector.min() < 0:
        raise InvalidEvent("wrong-dimension", f"{event.vector.size} numbers", "3, none negative", "")


def assert_same(role: str, messages: Sequence[Message]) -> Batch:
    """Compares with decoding every message alone, and returns what was read."""
    batch = BulkReader(role, 3, 0.0, check).read_all(messages)
    refused: dict[int, str] = {}
    vectors: list[bytes] = []
    for index, (message, row) in enumerate(zip(messages, batch.events, strict=True)):
        try:
            event = decode(role, message.key, message.value, message.headers)
            assert isinstance(event, VectorEvent)
            check(event)
        except InvalidEvent as error:
            refused[index] = str(error)
            assert row is None
        else:
            assert row is not None
            assert (row.key, row.id, row.row) == (getattr(event, event.KEY or ""), event.id, len(vectors))
            assert set(row.more) >= {(name, value) for name, value in message.headers if not name.startswith("ce_")}
            vectors.append(event.vector.astype(np.float32).tobytes())
    assert {index: str(error) for index, error in batch.refused.items()} == refused
    assert (batch.rows.dtype, batch.rows.shape) == (np.float32, (len(vectors), 3))
    assert batch.rows.tobytes() == b"".join(vectors)
    return batch


@st.composite
def mixed(draw: st.DrawFn, role: str) -> list[Message]:
    """Records of a role: many of the right length, others of any length, some broken in one of the known ways."""
    events = EVENTS[type(EXAMPLES[role])]
    fitting = events.map(lambda event: event.model_copy(update={"vector": ROW}))
    message = st.builds(encode, fitting | events, st.sampled_from(["binary", "json"]))
    broken = st.sampled_from([Message(case.key, case.value, case.headers) for case in HOSTILE if case.role == role])
    return draw(st.lists(st.one_of(message, message, broken), max_size=6))


@pytest.mark.parametrize("role", EXAMPLES)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_records(role: str, data: st.DataObject) -> None:
    assert_same(role, data.draw(mixed(role)))


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: f"{case.role}: {case.label}")
def test_hostile_records_among_valid_ones(case: Case) -> None:
    valid = encode(EXAMPLES[case.role])
    batch = assert_same(case.role, [valid, Message(case.key, case.value, case.headers), valid])
    assert batch.refused[1].reason == case.reason and batch.decoded == 1


@pytest.mark.parametrize(
    ("more", "valid"),
    [
        ((("ce_time", b"2025-01-31T12:00:00Z"), ("ce_time", b"2025-01-31T12:00:00Z")), False),
        ((("ce_id", b"a"), ("ce_id", b"b")), False),
        ((("ce_dtype", b"float16"),), False),
        ((("ce_time", b"yesterday"),), False),
        ((("ce_time", b"2025-13-31T12:00:00Z"),), False),
        ((("ce_id", b""),), False),
        ((("ce_id", b"\xff"),), False),
        ((("ce_id", b"a\nb"),), False),
        ((("ce_id", b"x" * 257),), False),
        ((("ce_time", b"2025-01-31T13:00:00+01:00"),), True),
        ((("ce_type", b"cgzsl.feature.v1"),), True),
        ((("content-type", b"application/octet-stream"),), True),
        ((("ce_id", "soft\u00adhyphen".encode()),), True),
    ],
    ids=str,
)
def test_headers_that_need_a_closer_look_are_decoded(more: Headers, valid: bool) -> None:
    batch = assert_same("features", [Message(b"c", ROW.tobytes(), HEADERS + more)])
    assert (batch.decoded, len(batch.rows)) == (1, valid)


def test_what_our_encoder_writes_is_read_in_bulk() -> None:
    messages = [encode(Feature(class_id=f"c{n}", vector=ROW * n, id=f"id {n}")) for n in range(5)]
    foreign = messages[0]._replace(headers=(*messages[0].headers, ("trace", b"\xff")))
    assert assert_same("features", [*messages, foreign]).decoded == 0


def test_float16_becomes_float32_and_only_the_first_format_is_read_in_bulk() -> None:
    half = encode(Feature(class_id="c", vector=ROW.astype(np.float16)))
    whole = encode(Feature(class_id="c", vector=ROW))
    assert assert_same("features", [half, half]).decoded == 0
    assert assert_same("features", [half, whole, half]).decoded == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1.0])
def test_one_bad_number_refuses_one_record(bad: float) -> None:
    messages = [encode(Feature(class_id=f"c{n}", vector=ROW + n)) for n in range(3)]
    numbers = ROW.copy()
    numbers[1] = bad
    messages[1] = messages[1]._replace(value=numbers.tobytes())
    batch = assert_same("features", messages)
    assert (list(batch.refused), batch.decoded) == ([1], 1)


def test_without_a_length_every_vector_is_valid_and_none_is_collected() -> None:
    messages = [encode(Sample(request_id=f"r{n}", vector=np.ones(n, np.float32))) for n in (1, 2)]
    batch = BulkReader("samples", None).read_all([*messages, Message(b"r", b"no sample")])
    assert [None if event is None else event.key for event in batch.events] == ["r1", "r2", None]
    assert (list(batch.refused), batch.decoded, batch.rows.shape) == ([2], 3, (2, 0))
