"""The memory for a window is bounded, whatever its size; counts stay exact and digests the same."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
from guarded import A, B, Stream, new_stream

from stream_cgzsl.schemas import Boundary, Feature, Genesis, encode
from stream_cgzsl.windows.gather import Gatherer

MEGABYTE = 1_000_000


def flood(stream: Stream, rows: int, features: int) -> None:
    """Sends a window of so many features."""
    rng = np.random.default_rng(5)
    stream.producer.describe(A, B)
    with stream.bus.writer() as writer:
        for number in range(rows):
            event = Feature(class_id=(A, B)[number % 2], vector=rng.random(features, np.float32), id=str(number))
            writer.send(stream.topics["features"], encode(event))
    stream.producer.events("control", Boundary(reason="flood"))


def test_a_window_far_over_budget_is_learned_with_exact_counts(stream: Stream) -> None:
    flood(stream, 3000, 16)
    stream.learn_until(1, memory_gb=100 * 16 * 4 / 1e9)  # for a hundred features
    assert sum(span.accepted for span in stream.ledger()[1].ranges["features"].values()) == 3000
    stream.assert_sound(windows=1)


def test_the_same_rows_are_kept_whatever_the_partitions(tmp_path: Path) -> None:
    digests = set()
    for partitions in (1, 3):
        directory = tmp_path / str(partitions)
        directory.mkdir()
        with new_stream(f"sqlite:///{directory / 'bus.db'}", directory, partitions) as stream:
            flood(stream, 1500, 16)
            stream.learn_until(1, memory_gb=100 * 16 * 4 / 1e9)
            digests.add(stream.results()[0][3:])
    assert len(digests) == 1


def test_reading_a_window_needs_little_more_than_the_budget(embedded: Stream) -> None:
    """64 MB of features, 4 MB of them kept."""
    rows, features, budget = 8000, 2048, 4 * MEGABYTE
    flood(embedded, rows, features)
    genesis = Genesis(attributes=8, features=features, signed=False)
    gatherer = Gatherer(embedded.bus, embedded.topics, genesis, budget, poll_records=100)
    begins = {role: embedded.bus.begin_offsets(embedded.topics[role]) for role in ("attributes", "features")}
    ends = {role: embedded.bus.end_offsets(embedded.topics[role]) for role in ("attributes", "features")}
    tracemalloc.start()
    gathered = gatherer.gather(1, begins, ends, frozenset(), frozenset())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = sum(len(examples.rows) for examples in gathered.window.features.values())
    assert sum(examples.count for examples in gathered.window.features.values()) == rows
    assert 0.8 * budget < kept * 4 * features < budget
    assert peak < 3 * budget
