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
