"""One learner leads a stream; others stand by, and take over when it dies or hangs, never while it works."""

from __future__ import annotations

import math
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from guarded import SESSION_SECONDS, TASKS, Result, Stream, new_stream
from launcher import Point
from patience import PATIENCE_SECONDS

LONG_SESSION_SECONDS = 6.0
GRACE_SECONDS = 6.0
"""For the election and for reading the ledger."""


@pytest.mark.parametrize("place", ["in train", "after train"])
def test_a_learner_that_was_stopped_longer_than_its_session_publishes_nothing(
    stream: Stream, undisturbed: list[Result], place: str
) -> None:
    stream.send_tasks()
    with stream.learner(Point(place, 2, "stop")) as stopped:
        stopped.wait_until_stopped()
        with stream.learner() as other:
            stream.wait_for(3, other)
            stopped.signal(signal.SIGCONT)
            stopped.wait_until(lambda log: "standing by" in log or "has taken over" in log)
            assert stopped.process.exitcode in (None, 6)
            other.end()
    assert stream.results() == undisturbed
    assert stream.check().problems == []


def test_a_standby_takes_over_within_a_session(stream: Stream, undisturbed: list[Result]) -> None:
    """In one of three attempts: a machine that is busy with something else may be too slow for the others."""
    stream.send_tasks(1)
    takeovers: list[float] = []
    with ExitStack() as stack:
        leader = stack.enter_context(stream.learner())
        stream.wait_for(1, leader)
        while len(takeovers) < 3 and min(takeovers, default=math.inf) > SESSION_SECONDS + GRACE_SECONDS:
            standby = stack.enter_context(stream.learner())
            standby.wait_for_log("standing by")
            leader.kill()
            killed = time.monotonic()
            standby.wait_for_log("at window 1")
            takeovers.append(time.monotonic() - killed)
            leader = standby
        stream.send_tasks(2, 3)
        stream.wait_for(3, leader)
    assert min(takeovers) < SESSION_SECONDS + GRACE_SECONDS
    assert stream.results() == undisturbed


def test_a_learner_that_stops_is_replaced_before_its_session_ends(bus_url: str, tmp_path: Path) -> None:
    with new_stream(bus_url, tmp_path, session_seconds=5 * PATIENCE_SECONDS) as stream, stream.learner() as first:
        first.wait_for_log("at window 0")
        with stream.learner() as second:
            second.wait_for_log("standing by")
            first.end()
            second.wait_for_log("at window 0")
            assert second.end().count("learner: at window 0") == 1


def test_standbys_never_take_over_from_a_working_learner(
    bus_url: str, tmp_path: Path, undisturbed: list[Result]
) -> None:
    """With sessions that outlast a busy moment of the machine: a leader whose session ends is rightly replaced."""
    with new_stream(bus_url, tmp_path, session_seconds=LONG_SESSION_SECONDS) as stream, stream.learner() as first:
        first.wait_for_log("at window 0")
        with stream.learner() as second, stream.learner() as third:
            second.wait_for_log("standing by")
            third.wait_for_log("standing by")
            for task in TASKS:
                stream.send_tasks(task)
                stream.wait_for(task, first, second, third)
            time.sleep(LONG_SESSION_SECONDS)
            stream.send_tasks(4)
            first.wait_for_log("learner: window 4")
            logs = [learner.log() for learner in (first, second, third)]
        assert [log.count("learner: at window") for log in logs] == [1, 0, 0]
        assert [log.count("learner: window") for log in logs] == [4, 0, 0]
        assert stream.results()[:3] == undisturbed
