"""What all events have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from stream_cgzsl.schemas import Feature, Holdout


def feature(**changes: Any) -> Feature:
    return Feature(**{"class_id": "zebra", "vector": np.array([1, 0], np.float32), "id": "a", **changes})


def test_equal_fields_make_equal_events() -> None:
    assert feature() == feature()


@pytest.mark.parametrize(
    "changes",
    [
        {"class_id": "okapi"},
        {"id": None},
        {"vector": np.array([1, 0], np.float16)},
        {"vector": np.array([1, -0.0], np.float32)},
        {"vector": np.array([1, 0, 0], np.float32)},
    ],
    ids=["key", "id", "dtype", "sign of zero", "length"],
)
def test_any_difference_makes_them_differ(changes: dict[str, Any]) -> None:
    assert feature(**changes) != feature()


def test_events_of_two_types_differ() -> None:
    same = {"class_id": "zebra", "vector": np.ones(1)}
    assert Holdout(**same) != Feature(**same)


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        feature().class_id = "okapi"  # type: ignore[misc]


def test_an_event_has_no_fields_the_contract_does_not_name() -> None:
    with pytest.raises(ValidationError, match="label"):
        feature(label="zebra")
