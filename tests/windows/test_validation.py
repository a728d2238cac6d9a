"""What fits a stream: the lengths and signs that its genesis fixes, one by one and in bulk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
from helpers import GENESIS

from stream_cgzsl.bus import Record
from stream_cgzsl.schemas import Array, Attribute, Feature, Holdout, InvalidEvent, Sample, VectorEvent, encode
from stream_cgzsl.windows.validation import check_attribute, check_feature, feature_reader, hash_id

SIGNED = GENESIS.model_copy(update={"signed": True})
FITTING = np.ones(16, np.float32)
NEGATIVE = np.full(16, -1, np.float32)
SHORT = np.ones(15, np.float32)


def refusal(event: VectorEvent, signed: bool = False) -> str | None:
    """The reason why an event does not fit, or None where it does."""
    try:
        check_feature(event, SIGNED if signed else GENESIS)
    except InvalidEvent as error:
        return error.reason
    return None


@pytest.mark.parametrize(
    "event",
    [
        lambda vector: Feature(class_id="a", vector=vector),
        lambda vector: Holdout(class_id="a", vector=vector),
        lambda vector: Sample(request_id="a", vector=vector),
    ],
    ids=["feature", "holdout", "sample"],
)
def test_the_same_rules_hold_for_every_vector_of_the_feature_space(event: Callable[[Array], VectorEvent]) -> None:
    assert [refusal(event(v)) for v in (FITTING, SHORT, NEGATIVE)] == [None, "wrong-dimension", "negative-feature"]
    assert [refusal(event(v), signed=True) for v in (FITTING, SHORT, NEGATIVE)] == [None, "wrong-dimension", None]


def test_a_description_may_be_negative_but_not_of_another_length() -> None:
    check_attribute(Attribute(class_id="a", vector=np.full(8, -1, np.float32)), GENESIS)
    with pytest.raises(InvalidEvent, match="the vector has 9 numbers"):
        check_attribute(Attribute(class_id="a", vector=np.ones(9, np.float32)), GENESIS)


@pytest.mark.parametrize("signed", [False, True])
def test_reading_in_bulk_refuses_what_reading_one_by_one_refuses(signed: bool) -> None:
    events = [Feature(class_id="a", vector=vector) for vector in (FITTING, SHORT, NEGATIVE)]
    messages = [encode(event, encoding) for event in events for encoding in ("binary", "json")]
    records = [Record("t", 0, n, 0, m.key, m.value, m.headers) for n, m in enumerate(messages)]
    read = feature_reader("features", SIGNED if signed else GENESIS).read_all(records)
    expected = [refusal(event, signed) for event in events for _ in range(2)]
    assert {place: error.reason for place, error in read.refused.items()} == {
        place: reason for place, reason in enumerate(expected) if reason is not None
    }


def test_ids_of_two_topics_have_different_hashes() -> None:
    assert hash_id("features", "1") == hashlib.sha256(b"features\x001").digest()[:16]
    assert hash_id("features", "1") != hash_id("attributes", "1")
