"""A learner killed at any moment: what it had not committed is repeated, with the same result."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from guarded import A, B, Result, Stream
from helpers import WORLD
from launcher import PLACES, Point

from stream_cgzsl.schemas import Feature

BEGIN = int(time.time()) // 10 * 10 - 600  # recent: a broker expires records by their own time


@pytest.mark.parametrize("place", PLACES)
def test_a_killed_learner_leaves_the_results_unchanged(embedded: Stream, undisturbed: list[Result], place: str) -> None:
    embedded.send_tasks()
    embedded.crash(place, window=2)
    embedded.learn_until(3)
    assert embedded.results() == undisturbed
    assert embedded.check().problems == []


def test_one_window_survives_a_crash_at_every_point(stream: Stream, undisturbed: list[Result]) -> None:
    """One crash after the other in the same window: only the last is after its commit."""
    stream.send_tasks()
    for place in PLACES:
        stream.crash(place, window=2)
    stream.learn_until(3)
    assert stream.results() == undisturbed
    assert stream.check().problems == []


@pytest.mark.parametrize(
    "policy",
    [{"count": 24}, {"event_time": 10, "event_idle": 1}, {"max_age": 0.3}],
    ids=["count", "event-time", "max-age"],
)
def test_windows_of_other_policies_have_every_record_once(stream: Stream, policy: dict[str, Any]) -> None:
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
    """24 features with times in one span of ten seconds, the next span for the next number."""
    return [
        Feature(class_id=c, vector=row, time=datetime.fromtimestamp(BEGIN + 10 * number + n / 2, UTC))
        for c in (A, B)
        for n, row in enumerate(WORLD.draw(c, 12, number))
    ]
