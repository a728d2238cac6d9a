"""One learner a stream: others stand by, take over when it dies or falls silent, and never while it is at work."""

from __future__ import annotations

import signal
import time

import pytest
from guarded import SESSION_SECONDS, TASKS, Stream, Told
from launcher import Point

GRACE_SECONDS = 6.0
"""For the group to settle and the ledger to be read, on a machine that has other things to do."""


@pytest.mark.parametrize("place", ["in train", "after train"])
def test_a_learner_stopped_past_its_session_publishes_nothing_any_more(
    stream: Stream, undisturbed: list[Told], place: str
) -> None:
    stream.tell()
    with stream.learner(Point(place, 2, "stop")) as stopped:
        stopped.wait_until_stopped()
        with stream.learner() as other:
            stream.wait_for(3, other)
            stopped.signal(signal.SIGCONT)
            stopped.wait_until(lambda log: "standing by" in log or "has taken over" in log)
            assert stopped.process.exitcode in (None, 6)
            other.end()
    assert stream.told() == undisturbed
    assert stream.check().problems == []


def test_a_standby_takes_over_within_a_session(stream: Stream, undisturbed: list[Told]) -> None:
    stream.tell(1)
    with stream.learner() as first, stream.learner() as second:
        stream.wait_for(1, first, second)
        working, waiting = (first, second) if "at window" in first.log() else (second, first)
        waiting.wait_for_log("standing by")
        working.kill()
        killed = time.monotonic()
        waiting.wait_for_log("at window 1")
        assert time.monotonic() - killed < SESSION_SECONDS + GRACE_SECONDS
        stream.tell(2, 3)
        stream.wait_for(3, waiting)
    assert stream.told() == undisturbed


def test_a_learner_that_ends_in_order_is_followed_at_once(stream: Stream) -> None:
    with stream.learner() as first:
        first.wait_for_log("at window 0")
        with stream.learner() as second:
            second.wait_for_log("standing by")
            first.end()
            second.wait_for_log("at window 0")


def test_those_who_stand_by_never_take_the_stream_from_the_one_at_work(stream: Stream, undisturbed: list[Told]) -> None:
    with stream.learner() as first:
        first.wait_for_log("at window 0")
        with stream.learner() as second, stream.learner() as third:
            second.wait_for_log("standing by")
            third.wait_for_log("standing by")
            for task in TASKS:
                stream.tell(task)
                stream.wait_for(task, first, second, third)
            time.sleep(SESSION_SECONDS)
            stream.tell(4)
            first.wait_for_log("learner: window 4")
            logs = [learner.log() for learner in (first, second, third)]
    assert [log.count("learner: at window") for log in logs] == [1, 0, 0]
    assert [log.count("learner: window") for log in logs] == [4, 0, 0]
    assert stream.told()[:3] == undisturbed
