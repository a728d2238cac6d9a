"""A learner killed at any moment: what it had not committed is done again, and to the same byte."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from guarded import A, B, Stream, Told
from helpers import WORLD
from launcher import PLACES, Point

from stream_cgzsl.schemas import Feature

BEGIN = int(time.time()) // 10 * 10 - 600  # recent: a broker lets records expire by the time they have


@pytest.mark.parametrize("place", PLACES)
def test_windows_that_markers_close_come_out_the_same(embedded: Stream, undisturbed: list[Told], place: str) -> None:
    embedded.tell()
    embedded.crash(place, window=2)
    embedded.learn_until(3)
    assert embedded.told() == undisturbed
    assert embedded.check().problems == []


def test_one_window_survives_a_crash_at_every_place(stream: Stream, undisturbed: list[Told]) -> None:
    """One after the other, in the same window: only the last one comes after its commit."""
    stream.tell()
    for place in PLACES:
        stream.crash(place, window=2)
    stream.learn_until(3)
    assert stream.told() == undisturbed
    assert stream.check().problems == []


@pytest.mark.parametrize(
    "policy",
    [{"count": 24}, {"event_time": 10, "event_idle": 1}, {"max_age": 0.3}],
    ids=["count", "event-time", "max-age"],
)
def test_windows_of_other_policies_hold_every_record_once(stream: Stream, policy: dict[str, Any]) -> None:
    stream.producer.describe(A, B)
    for window, place in enumerate(("after plan", "in train", "at the end of commit"), 1):
        with stream.learner(Point(place, window), **policy) as learner:
            if window > 1:
                stream.wait_for(window - 1, learner)
            stream.producer.events("features", *batch(window))
            learner.wait(-signal.SIGKILL)
    stream.learn_until(3, **policy)
    stream.assert_sound(windows=3)
    assert stream.check().accepted == 2 + 3 * 24


def batch(number: int) -> list[Feature]:
    """24 features of some ten seconds, a little later for each number."""
    return [
        Feature(class_id=c, vector=row, time=datetime.fromtimestamp(BEGIN + 10 * number + n / 2, UTC))
        for c in (A, B)
        for n, row in enumerate(WORLD.draw(c, 12, number))
    ]
