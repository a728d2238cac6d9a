"""Topics that no other test uses, on the bus under test: each kind of bus, and each client of Kafka."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from bus_reading import NewTopic

from stream_cgzsl.bus import Bus, TopicSpec
from stream_cgzsl.bus.kafka.settings import CLIENTS


@pytest.fixture(params=["sqlite", *(pytest.param(client, marks=pytest.mark.kafka) for client in CLIENTS)])
def bus_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'bus.db'}"
    url: str = request.getfixturevalue("kafka_url")
    return f"{url}{'&' if '?' in url else '?'}client={request.param}"


@pytest.fixture
def new_topic(bus: Bus) -> NewTopic:
    """Creates a topic and returns its name: `new_topic(partitions=1, cleanup="keep")`."""

    def create(partitions: int = 1, cleanup: str = "keep") -> str:
        name = f"contract-{uuid.uuid4().hex[:12]}"
        bus.create([TopicSpec(name, partitions, cleanup)])
        return name

    return create


@pytest.fixture
def topic(new_topic: NewTopic) -> str:
    """A topic of one partition."""
    return new_topic()


@pytest.fixture
def name() -> str:
    """A name for a group, a publisher or a lock that no other test uses."""
    return f"contract-{uuid.uuid4().hex[:12]}"
