"""The broker goes away while a learner works: it waits, says so, and goes on; nothing is lost and nothing done twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from guarded import Child, Stream, Told, new_stream
from launcher import Point

from stream_cgzsl.bus.broker import Broker

pytestmark = pytest.mark.kafka

PATIENCE_SECONDS = 4.0


@pytest.fixture
def stream(mortal: Broker, tmp_path: Path) -> Iterator[Stream]:
    # Sessions that outlast a busy moment: a learner whose session ends would rightly train its window again.
    with new_stream(f"{mortal.url}?patience_ms={PATIENCE_SECONDS * 1000:.0f}", tmp_path, session_seconds=8.0) as stream:
        yield stream


@contextmanager
def held_at(stream: Stream, place: str) -> Iterator[Child]:
    """A learner that waits at a place in window 2 while something happens, and then goes on to the end."""
    gate = stream.directory / "gate"
    gate.touch()
    stream.tell()
    with stream.learner(Point(place, 2, "wait", gate)) as learner:
        learner.wait_until(lambda _: gate.with_suffix(".reached").exists())
        yield learner
        stream.wait_for(3, learner)
        learner.end()


def go_on(stream: Stream) -> None:
    (stream.directory / "gate").unlink()


def test_a_broker_that_restarts_while_a_window_is_read_costs_nothing_but_time(
    stream: Stream, mortal: Broker, undisturbed: list[Told]
) -> None:
    with held_at(stream, "in read"):
        mortal.restart()
        go_on(stream)
    assert stream.told() == undisturbed
    assert stream.check().problems == []


def test_a_broker_that_is_away_when_training_ends_is_waited_for(
    stream: Stream, mortal: Broker, undisturbed: list[Told]
) -> None:
    with held_at(stream, "in train") as learner:
        mortal.kill()
        time.sleep(PATIENCE_SECONDS + 2.0)  # longer than any client waits
        go_on(stream)
        learner.wait_for_log("trying again")
        mortal.restart()
    assert stream.told() == undisturbed
    assert stream.check().problems == []


def test_a_broker_that_dies_in_a_commit_is_waited_for(stream: Stream, mortal: Broker, undisturbed: list[Told]) -> None:
    with held_at(stream, "in commit") as learner:
        mortal.kill()
        go_on(stream)
        learner.wait_for_log("trying again")
        mortal.restart()
    assert stream.told() == undisturbed
    assert stream.check().problems == []
