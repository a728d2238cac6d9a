"""Streams on either bus, and what their story leads to when nothing goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded import Stream, Told, new_stream

from stream_cgzsl.bus import broker
from stream_cgzsl.errors import BusUnavailable


@pytest.fixture
def stream(bus_url: str, tmp_path: Path) -> Iterator[Stream]:
    with new_stream(bus_url, tmp_path) as stream:
        yield stream


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Stream]:
    """A stream on the embedded bus, for what does not depend on the bus."""
    with new_stream(f"sqlite:///{tmp_path / 'bus.db'}", tmp_path) as stream:
        yield stream


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """The story, learned to its end on the embedded bus. For tests that only look at it."""
    directory = tmp_path_factory.mktemp("here")
    with new_stream(f"sqlite:///{directory / 'bus.db'}", directory) as stream:
        stream.tell()
        stream.learn_until(3)
        yield stream


@pytest.fixture(scope="session")
def undisturbed(here: Stream) -> list[Told]:
    """The windows of the story as a learner leaves them that nothing happens to."""
    return here.told()


@pytest.fixture(scope="session", params=["sqlite", pytest.param("kafka", marks=pytest.mark.kafka)])
def learned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """The same on each bus in turn."""
    if request.param == "sqlite":
        yield request.getfixturevalue("here")
        return
    with new_stream(request.getfixturevalue("kafka_url"), tmp_path_factory.mktemp("learned")) as stream:
        stream.tell()
        stream.learn_until(3)
        yield stream


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[broker.Broker]:
    """A broker of our own, that may be ended and started again."""
    try:
        broker.jars()
    except BusUnavailable as error:
        pytest.skip(f"this test needs a broker that it may end and start again: {error}")
    started = broker.start(tmp_path_factory.mktemp("mortal"), properties={"group.min.session.timeout.ms": "1000"})
    yield started
    started.stop()
