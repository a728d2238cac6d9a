"""Windows that bring little: updates and refreshes mixed, crashes in between, any partitions, the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from guarded import A, B, C, D, E, Result, Stream, new_stream
from helpers import CLASSES, description, examples

from stream_cgzsl.history.replay import Verdict, verify
from stream_cgzsl.schemas import Attribute, Boundary, Event, Retirement, encode
from stream_cgzsl.serving.generation_io import load_generation
from stream_cgzsl.windows.offsets import DATA_ROLES
from stream_cgzsl.windows.recorded import Ledger

F = CLASSES[5]

REVISED = Attribute(class_id=D, vector=-description(D).vector)

WINDOWS: list[tuple[bool, list[Event], list[Event]]] = [
    (True, [description(c) for c in (A, B, C, D, E)], examples((A, B, C, D), 12)),
    (False, [], examples((A,), 1, purpose=2)),
    (False, [description(F)], []),
    (True, [], examples((B, C), 2, purpose=4)),
    (False, [REVISED, Retirement(class_id=E)], []),
    (False, [], examples((A, D), 1, purpose=6)),
    (True, [], examples((F,), 2, purpose=7)),
    (False, [], examples((F,), 1, purpose=8)),
]
"""Whether a window refreshes, its descriptions and its examples."""

SETTINGS: dict[str, Any] = {"learner": "evidence", "snapshot_every": 3}


def send(stream: Stream) -> None:
    with stream.bus.writer() as writer:
        for number, (_, described, features) in enumerate(WINDOWS, 1):
            for role, events in (("attributes", described), ("features", features)):
                for event in events:
                    writer.send(stream.topics[role], encode(event))
                writer.flush()
            cut = {role: stream.bus.end_offsets(stream.topics[role]) for role in DATA_ROLES}
            writer.send(stream.topics["control"], encode(Boundary(reason=f"task {number}", cut=cut)))
        writer.flush()


def assert_all_there(stream: Stream) -> None:
    """Updates are published as updates, every generation can be loaded, and a replay gives the same bytes."""
    records = stream.ledger()[1:]
    assert [record.update is None for record in records] == [refreshes for refreshes, _, _ in WINDOWS]
    for record in records:
        assert load_generation(stream.bus, stream.topics, record).digest == record.generation
    stream.assert_sound(len(WINDOWS))
    recorded = Ledger.open(stream.bus, stream.topics)
    assert recorded is not None
    replayed = verify(stream.bus, stream.topics, recorded, "cpu", first=5)  # from the snapshot of window 3
    assert {window.verdict for window in replayed} == {Verdict.IDENTICAL}


@pytest.fixture(scope="module")
def trickled(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """The results of a learner that nothing happens to."""
    directory = tmp_path_factory.mktemp("trickled")
    with new_stream(f"sqlite:///{directory / 'bus.db'}", directory, partitions=1) as stream:
        send(stream)
        stream.learn_until(len(WINDOWS), **SETTINGS)
        assert_all_there(stream)
        return stream.results()


def test_crashes_leave_the_results_unchanged(embedded: Stream, trickled: list[Result]) -> None:
    """In updates and in a refresh, right after a snapshot and long after one."""
    send(embedded)
    for place, window in (("in train", 2), ("in commit", 3), ("after commit", 3), ("in train", 4), ("in commit", 6)):
        embedded.crash(place, window, **SETTINGS)
    embedded.learn_until(len(WINDOWS), **SETTINGS)
    assert embedded.results() == trickled
    assert_all_there(embedded)


@pytest.mark.kafka
def test_on_kafka_through_four_partitions_they_are_the_same(
    kafka_url: str, tmp_path: Path, trickled: list[Result]
) -> None:
    with new_stream(kafka_url, tmp_path, partitions=4) as stream:
        send(stream)
        stream.crash("in commit", 3, **SETTINGS)
        stream.learn_until(len(WINDOWS), **SETTINGS)
        assert stream.results() == trickled
        assert_all_there(stream)


def test_a_rollback_to_an_update_answers_as_it_did(embedded: Stream, trickled: list[Result]) -> None:
    send(embedded)
    embedded.learn_until(len(WINDOWS), **SETTINGS)
    assert embedded.run("rollback", "6")[0] == 0
    embedded.learn_until(len(WINDOWS) + 1, **SETTINGS)
    records = embedded.ledger()
    then, now = (load_generation(embedded.bus, embedded.topics, records[n]) for n in (6, len(WINDOWS) + 1))
    assert now.class_ids == then.class_ids
    assert (now.vectors == then.vectors).all() and (now.biases == then.biases).all()
    assert records[-1].update is None
    assert embedded.results()[: len(WINDOWS)] == trickled
    embedded.assert_sound(len(WINDOWS) + 1)
