"""The broker is unavailable while a learner works: it waits and continues; nothing is lost or learned twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from guarded import Child, Result, Stream, new_stream
from launcher import Point

from stream_cgzsl.demo.broker import Broker

pytestmark = pytest.mark.kafka

PATIENCE_SECONDS = 4.0


@pytest.fixture
def stream(restartable: Broker, tmp_path: Path) -> Iterator[Stream]:
    # Sessions that outlast a busy moment: a learner whose session ends would rightly train its window again.
    with new_stream(
        f"{restartable.url}?patience_ms={PATIENCE_SECONDS * 1000:.0f}", tmp_path, session_seconds=8.0
    ) as stream:
        yield stream


@contextmanager
def held_at(stream: Stream, place: str) -> Iterator[Child]:
    """A learner that waits at a point of window 2 while something happens, and then continues to the end."""
    gate = stream.directory / "gate"
    gate.touch()
    stream.send_tasks()
    with stream.learner(Point(place, 2, "wait", gate)) as learner:
        learner.wait_until(lambda _: gate.with_suffix(".reached").exists())
        yield learner
        stream.wait_for(3, learner)
        learner.end()


def release(stream: Stream) -> None:
    (stream.directory / "gate").unlink()


def test_a_broker_restart_while_a_window_is_read_changes_nothing(
    stream: Stream, restartable: Broker, undisturbed: list[Result]
) -> None:
    with held_at(stream, "in read"):
        restartable.restart()
        release(stream)
    assert stream.results() == undisturbed
    assert stream.check().problems == []


def test_a_broker_that_is_down_when_training_ends_is_waited_for(
    stream: Stream, restartable: Broker, undisturbed: list[Result]
) -> None:
    with held_at(stream, "in train") as learner:
        restartable.kill()
        time.sleep(PATIENCE_SECONDS + 2.0)  # longer than any client waits
        release(stream)
        learner.wait_for_log("trying again")
        restartable.restart()
    assert stream.results() == undisturbed
    assert stream.check().problems == []


def test_a_broker_that_dies_during_a_commit_is_waited_for(
    stream: Stream, restartable: Broker, undisturbed: list[Result]
) -> None:
    with held_at(stream, "in commit") as learner:
        restartable.kill()
        release(stream)
        learner.wait_for_log("trying again")
        restartable.restart()
    assert stream.results() == undisturbed
    assert stream.check().problems == []
