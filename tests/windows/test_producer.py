"""The Python producer: it writes what a learner reads, and every description before its examples."""

from __future__ import annotations

import doctest
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import read

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import Attribute, Boundary, Feature, decode
from stream_cgzsl.windows import producer as module
from stream_cgzsl.windows.producer import Producer

HERON = np.array([0.25, 0.5], np.float32)
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def prefix() -> str:
    return f"producer-{uuid.uuid4().hex[:8]}"


def events(bus: Bus, topics: Topics, role: str) -> list[Any]:
    return [decode(role, r.key, r.value, r.headers) for r in read(bus, topics[role])]


def test_a_stream_is_created_described_taught_and_cut(bus_url: str, prefix: str) -> None:
    topics = Topics(prefix)
    with Producer.connect(bus_url, prefix, partitions=2) as producer:
        producer.describe("heron", [0.25, 0.5], name="grey heron")
        producer.describe("owl", HERON.astype(np.float64))
        producer.teach("heron", ROWS, ids=["a", "b"])
        producer.teach("heron", ROWS[0].tolist())
        boundary = producer.end_task("monday")
    with connect(bus_url) as bus:
        assert {spec.name: spec for spec in topics.specs(2)}.items() <= bus.topics().items()
        described = sorted(events(bus, topics, "attributes"), key=lambda event: event.class_id)
        assert described == [
            Attribute(class_id="heron", vector=HERON, name="grey heron"),
            Attribute(class_id="owl", vector=HERON),
        ]
        assert events(bus, topics, "features") == [
            Feature(class_id="heron", vector=ROWS[0], id="a"),
            Feature(class_id="heron", vector=ROWS[1], id="b"),
            Feature(class_id="heron", vector=ROWS[0]),
        ]
        ends = {role: bus.end_offsets(topics[role]) for role in ("features", "attributes", "holdout")}
        assert events(bus, topics, "control") == [boundary] == [Boundary(reason="monday", cut=ends)]


def test_a_description_is_acknowledged_before_an_example_that_follows_it(bus: Bus, prefix: str) -> None:
    topics = Topics(prefix)
    bus.create(topics.specs())
    with Producer(bus, topics) as producer:
        producer.describe("heron", HERON)
        producer.teach("heron", ROWS)
        assert bus.end_offsets(topics["attributes"]) == {0: 1}
        producer.flush()
        assert bus.end_offsets(topics["features"])[0] == 2


def test_a_bus_that_the_caller_opened_stays_open(bus: Bus, prefix: str) -> None:
    topics = Topics(prefix)
    bus.create(topics.specs())
    with Producer(bus, topics) as producer:
        producer.describe("heron", HERON)
    assert len(events(bus, topics, "attributes")) == 1


def test_there_must_be_as_many_ids_as_rows(tmp_path: Path) -> None:
    with Producer.connect(f"sqlite:///{tmp_path}/bus.db") as producer, pytest.raises(ValueError, match="shorter"):
        producer.teach("heron", ROWS, ids=["a"])


def test_the_example_in_the_docstring_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(module)
    assert (found.failed, found.attempted) == (0, 1)
