"""Streams on either bus, and what their story leads to when nothing goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded import Stream, Told, new_stream


@pytest.fixture
def stream(bus_url: str, tmp_path: Path) -> Iterator[Stream]:
    with new_stream(bus_url, tmp_path) as stream:
        yield stream


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    """The windows of the story as a learner leaves them that nothing happens to."""
    directory = tmp_path_factory.mktemp("undisturbed")
    with new_stream(f"sqlite:///{directory / 'bus.db'}", directory) as stream:
        stream.tell()
        stream.learn_until(3)
        return stream.told()


@pytest.fixture(scope="session", params=["sqlite", pytest.param("kafka", marks=pytest.mark.kafka)])
def learned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """The story, learned to its end on each bus in turn. For tests that only look at it."""
    directory = tmp_path_factory.mktemp("learned")
    url = request.getfixturevalue("kafka_url") if request.param == "kafka" else f"sqlite:///{directory / 'bus.db'}"
    with new_stream(url, directory) as stream:
        stream.tell()
        stream.learn_until(3)
        yield stream
