"""The broker goes away while a learner works: it waits, says so, and goes on; nothing is lost and nothing done twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded import Stream, Told, new_stream
from launcher import Point

from stream_cgzsl.bus.broker import Broker

pytestmark = pytest.mark.kafka


@pytest.fixture
def stream(mortal: Broker, tmp_path: Path) -> Iterator[Stream]:
    with new_stream(f"{mortal.url}?patience_ms=4000", tmp_path) as stream:
        yield stream


@pytest.mark.parametrize("place", ["after plan", "in train", "in commit"], ids=["reading", "training", "committing"])
def test_an_outage_is_waited_for(
    stream: Stream, mortal: Broker, undisturbed: list[Told], tmp_path: Path, place: str
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    stream.tell()
    with stream.learner(Point(place, 2, "wait", gate)) as learner:
        learner.wait_until(lambda _: gate.with_suffix(".reached").exists())
        mortal.kill() if place == "in commit" else mortal.stop()
        gate.unlink()
        learner.wait_for_log("trying again")
        mortal.restart()
        stream.wait_for(3, learner)
        learner.end()
    assert stream.told() == undisturbed
    assert stream.check().problems == []


def test_a_broker_that_restarts_quickly_costs_nothing_but_time(
    stream: Stream, mortal: Broker, undisturbed: list[Told], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    stream.tell()
    with stream.learner(Point("in commit", 2, "wait", gate)) as learner:
        learner.wait_until(lambda _: gate.with_suffix(".reached").exists())
        mortal.restart()
        gate.unlink()
        stream.wait_for(3, learner)
        learner.end()
    assert stream.told() == undisturbed
    assert stream.check().problems == []
