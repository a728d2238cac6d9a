"""Streams on either bus, and the results of their tasks when nothing goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded import Result, Stream, new_stream

from stream_cgzsl.demo import broker
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
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """All tasks, learned on the embedded bus. For tests that only read."""
    directory = tmp_path_factory.mktemp("finished")
    with new_stream(f"sqlite:///{directory / 'bus.db'}", directory) as stream:
        stream.send_tasks()
        stream.learn_until(3)
        yield stream


@pytest.fixture(scope="session")
def undisturbed(finished: Stream) -> list[Result]:
    """The results of a learner that nothing happens to."""
    return finished.results()


@pytest.fixture(scope="session", params=["sqlite", pytest.param("kafka", marks=pytest.mark.kafka)])
def learned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """All tasks, learned on each bus in turn."""
    if request.param == "sqlite":
        yield request.getfixturevalue("finished")
        return
    with new_stream(request.getfixturevalue("kafka_url"), tmp_path_factory.mktemp("learned")) as stream:
        stream.send_tasks()
        stream.learn_until(3)
        yield stream


@pytest.fixture(scope="module")
def restartable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[broker.Broker]:
    """A broker that tests may stop and start again."""
    try:
        broker.jars()
    except BusUnavailable as error:
        pytest.skip(f"this test needs a broker that it may stop and start again: {error}")
    started = broker.start(tmp_path_factory.mktemp("restartable"), properties={"group.min.session.timeout.ms": "1000"})
    yield started
    started.stop()
