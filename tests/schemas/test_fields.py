"""The kinds of fields: what each takes, and what it makes of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from stream_cgzsl.schemas.fields import (
    Blob,
    Count,
    Flag,
    Fraction,
    JsonObject,
    Name,
    NonEmptyBytes,
    Number,
    Partition,
    Positive,
    Text,
    Time,
    Whole,
    parse_whole,
)

INT64 = 2**63 - 1
NOON = datetime(2025, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        (Name, "斑马 n° 7", "斑马 n° 7"),
        (Name, "x" * 256, "x" * 256),
        (Text, "", ""),
        (Text, "two\nlines", "two\nlines"),
        (Count, 0, 0),
        (Count, INT64, INT64),
        (Count, np.int64(7), 7),
        (Positive, np.uint8(1), 1),
        (Whole, -INT64 - 1, -INT64 - 1),
        (Partition, "0", 0),
        (Partition, "2147483647", 2**31 - 1),
        (Partition, 3, 3),
        (Number, 1, 1.0),
        (Number, np.float32(0.1), 0.10000000149011612),
        (Number, np.float64(0.25), 0.25),
        (Fraction, 1, 1.0),
        (Flag, True, True),
        (Flag, np.False_, False),
        (Time, NOON, NOON),
        (Time, "2025-01-31T12:00:00Z", NOON),
        (Time, "2025-01-31T13:30:00+01:30", NOON),
        (Time, datetime(2025, 1, 31, 13, tzinfo=ZoneInfo("Europe/Paris")), NOON),
        (Time, datetime(2025, 1, 31, 12, 0, 30, tzinfo=timezone(timedelta(seconds=30))), NOON),
        (Time, "2025-01-31T12:00:00.123456789Z", NOON.replace(microsecond=123_456)),
        (Blob, b"\xff", b"\xff"),
        (Blob, "/w==", b"\xff"),
        (Blob, "", b""),
        (NonEmptyBytes, b"\x00", b"\x00"),
        (JsonObject, {"a": (1, None), "b": {"c": np.float64(0.5)}}, {"a": [1, None], "b": {"c": 0.5}}),
        (JsonObject, {"big": 10**400}, {"big": 10**400}),
    ],
)
def test_a_field_keeps(kind: Any, given: Any, kept: Any) -> None:
    result = TypeAdapter(kind).validate_python(given)
    assert (type(result), result) == (type(kept), kept)


def test_a_time_is_kept_in_utc() -> None:
    moment = TypeAdapter(Time).validate_python("2025-01-31T13:30:00+01:30")
    assert moment.tzinfo is UTC


def _nested(depth: int) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for _ in range(depth):
        facts = {"in": facts}
    return facts


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Name, ""),
        (Name, "x" * 257),
        (Name, "tab\t"),
        (Name, "line\n"),
        (Name, "c1 control \x85"),
        (Name, "line separator \u2028"),
        (Name, "half a pair \ud800"),
        (Name, 7),
        (Text, "half a pair \udfff"),
        (Text, None),
        (Count, -1),
        (Count, INT64 + 1),
        (Count, 10**5000),
        (Count, 1.0),
        (Count, "1"),
        (Count, True),
        (Positive, 0),
        (Whole, INT64 + 1),
        (Partition, "01"),
        (Partition, "-1"),
        (Partition, "²"),
        (Partition, ""),
        (Partition, 2**31),
        (Partition, "9" * 5000),
        (Number, float("nan")),
        (Number, float("inf")),
        (Number, 10**400),
        (Number, "1"),
        (Number, True),
        (Fraction, 1.0000001),
        (Fraction, float("nan")),
        (Fraction, "0.5"),
        (Flag, 1),
        (Flag, "true"),
        (Flag, None),
        (Time, datetime(2025, 1, 31, 12)),
        (Time, "2025-01-31"),
        (Time, "2025-01-31T12:00:00"),
        (Time, "yesterday"),
        (Time, "9" * 100_000),
        (Time, 1738324800),
        (Time, datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))),
        (Time, datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12)))),
        (Blob, "/w="),
        (Blob, "/w==\n"),
        (Blob, "ä"),
        (Blob, 1),
        (NonEmptyBytes, b""),
        (NonEmptyBytes, ""),
        (JsonObject, {"x": float("nan")}),
        (JsonObject, {"x": "half a pair \ud800"}),
        (JsonObject, {"half a pair \ud800": 1}),
        (JsonObject, {"x": object()}),
        (JsonObject, {"x": 10**5000}),
        (JsonObject, _nested(300)),
        (JsonObject, [1]),
    ],
    ids=lambda item: type(item).__name__,
)
def test_a_field_refuses(kind: Any, given: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(given)


@pytest.mark.parametrize(
    "text", ["", "07", "+7", "7.0", " 7", "1_000", "٧", "9" * 5000], ids=lambda text: ascii(text)[:9]
)
def test_a_whole_number_has_one_canonical_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a whole number in decimal digits is expected$"):
        parse_whole(text)
