"""Control records: where a boundary cuts, and what happens to invalid ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from helpers import CLASSES, TOPICS, Producer, examples, new_bus, sqlite_url

from stream_cgzsl.bus import Bus
from stream_cgzsl.schemas import Boundary, DeadLetter, Message, Range, Rollback, decode
from stream_cgzsl.windows.cuts import Cut, Stream
from stream_cgzsl.windows.markers import Markers
from stream_cgzsl.windows.offsets import DATA_ROLES

A, B = CLASSES[:2]


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    """Two descriptions and six features wait, in two partitions."""
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        producer = Producer(bus)
        for partition, class_id in enumerate((A, B)):
            producer.events("features", *_features(class_id), partition=partition)
        producer.describe(A, B)
        yield bus


def _features(class_id: str) -> list[Any]:
    return examples([class_id], 3)


@pytest.fixture
def producer(bus: Bus) -> Producer:
    return Producer(bus)


@pytest.fixture
def stream(bus: Bus) -> Stream:
    stream = Stream(bus, TOPICS, lambda: 0.0)
    stream.starts = {role: bus.begin_offsets(TOPICS[role]) for role in DATA_ROLES}
    return stream


@pytest.fixture
def markers(bus: Bus) -> Iterator[Markers]:
    with closing(Markers(bus, TOPICS, 0)) as markers:
        yield markers


def dead_letters_of(cut: Cut) -> list[tuple[str, str]]:
    """Reason and detail of each."""
    letters = [decode("dead-letters", m.key, m.value, m.headers) for m in cut.dead]
    return [(letter.reason, letter.detail) for letter in letters if isinstance(letter, DeadLetter)]


# ---- where a boundary cuts


def test_without_control_records_no_window_closes(markers: Markers, stream: Stream) -> None:
    assert markers.look(stream) is None


def test_a_boundary_without_a_cut_takes_everything_up_to_the_moment_it_is_read(
    producer: Producer, markers: Markers, stream: Stream
) -> None:
    producer.events("control", Boundary(reason="task 1"))
    producer.events("features", *_features(A), partition=0)
    ends = stream.all_ends()
    assert markers.look(stream) == Cut("train", "marker", "task 1", ends, control=Range(start=0, end=1, accepted=1))
    assert ends["features"] == {0: 6, 1: 3}


def test_a_boundary_with_a_cut_takes_no_more_than_that(producer: Producer, markers: Markers, stream: Stream) -> None:
    sent = producer.boundary("task 1")
    producer.events("features", *_features(A), partition=0)
    producer.describe(CLASSES[2])
    cut = markers.look(stream)
    assert cut is not None and cut.ends == sent.cut
    assert cut.ends["features"] == {0: 3, 1: 3}


def test_partitions_a_cut_does_not_name_stay_where_they_are(
    producer: Producer, markers: Markers, stream: Stream
) -> None:
    stream.starts["features"] = {0: 0, 1: 1}
    producer.events("control", Boundary(cut={"features": {0: 2}}))
    cut = markers.look(stream)
    assert cut is not None and cut.ends == {
        "features": {0: 2, 1: 1},
        "attributes": stream.ends("attributes"),
        "holdout": {0: 0, 1: 0},
    }


def test_a_cut_before_the_window_starts_takes_nothing(producer: Producer, markers: Markers, stream: Stream) -> None:
    stream.starts["features"] = {0: 2, 1: 3}
    producer.events("control", Boundary(cut={"features": {0: 1, 1: 0}, "attributes": {0: 0, 1: 0}}))
    cut = markers.look(stream)
    assert cut is not None and (cut.ends["features"], cut.ends["attributes"]) == ({0: 2, 1: 3}, {0: 0, 1: 0})


def test_boundaries_are_taken_one_at_a_time_in_their_order(
    producer: Producer, markers: Markers, stream: Stream
) -> None:
    producer.events("control", *(Boundary(reason=f"task {n}", cut={"features": {0: n, 1: 0}}) for n in (1, 2, 3)))
    cuts = []
    while cut := markers.look(stream):
        cuts.append((cut.reason, cut.ends["features"], cut.control))
        stream.starts = cut.ends
    assert cuts == [(f"task {n}", {0: n, 1: 0}, Range(start=n - 1, end=n, accepted=1)) for n in (1, 2, 3)]


def test_markers_continue_after_the_last_one_in_the_ledger(bus: Bus, producer: Producer, stream: Stream) -> None:
    producer.events("control", Boundary(reason="old"), Boundary(reason="new"))
    with closing(Markers(bus, TOPICS, 1)) as markers:
        cut = markers.look(stream)
    assert cut is not None and (cut.reason, cut.control) == ("new", Range(start=1, end=2, accepted=1))


# ---- invalid control records


def test_a_cut_at_records_that_are_not_visible_yet_is_waited_for(
    producer: Producer, markers: Markers, stream: Stream
) -> None:
    producer.events("control", Boundary(cut={"features": {0: 4}}), Boundary(reason="next"))
    assert markers.look(stream) is None
    producer.events("features", *_features(A)[:1], partition=0)
    cut = markers.look(stream)
    assert cut is not None
    assert (cut.ends["features"], cut.dead, cut.control) == ({0: 4, 1: 0}, (), Range(start=0, end=1, accepted=1))


def test_a_cut_at_records_that_never_come_becomes_a_dead_letter(bus: Bus, producer: Producer, markers: Markers) -> None:
    now = 0.0
    stream = Stream(bus, TOPICS, lambda: now)
    stream.starts = {role: bus.begin_offsets(TOPICS[role]) for role in DATA_ROLES}
    producer.events("control", Boundary(cut={"features": {0: 4}}), Boundary(reason="next"))
    assert markers.look(stream) is None
    now = 59.0
    assert markers.look(stream) is None
    now = 61.0
    cut = markers.look(stream)
    assert cut is not None
    assert dead_letters_of(cut) == [
        (
            "cut-beyond-end",
            "t.control/0 offset 0: cut-beyond-end: the cut ends features/0 at 4, the topic ends at 3; expected offsets "
            "of acknowledged records. Flush the producers, then ask for end offsets, then send the boundary.",
        )
    ]
    assert (cut.reason, cut.control) == ("next", Range(start=0, end=2, accepted=1, dead={"cut-beyond-end": 1}))


@pytest.mark.parametrize(
    ("event", "reason", "detail"),
    [
        (
            Boundary(cut={"features": {7: 0}}),
            "cut-beyond-end",
            "the cut ends features/7 at 0, and there is no such partition; expected offsets of acknowledged records. "
            "Flush the producers, then ask for end offsets, then send the boundary.",
        ),
        (
            Boundary(cut={"windows": {0: 1}}),
            "invalid-field",
            "the cut names 'windows'; expected features or attributes or holdout. Use these roles.",
        ),
        (
            Rollback(to=1),
            "unknown-generation",
            "a rollback to generation 1; expected 1 to 0. See the generations there are with: stream-cgzsl check",
        ),
    ],
    ids=["no such partition", "no such role", "rollback to nowhere"],
)
def test_an_impossible_control_record_becomes_a_dead_letter_and_the_next_one_is_followed(
    producer: Producer, markers: Markers, stream: Stream, event: Any, reason: str, detail: str
) -> None:
    producer.events("control", event, Boundary(reason="next"))
    cut = markers.look(stream)
    assert cut is not None
    assert dead_letters_of(cut) == [(reason, f"t.control/0 offset 0: {reason}: {detail}")]
    assert (cut.reason, cut.control) == ("next", Range(start=0, end=2, accepted=1, dead={reason: 1}))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "empty-value"),
        (b"\xff\xfe", "not-json"),
        (b"[]", "not-json"),
        (b'{"type":"cgzsl.boundary.v2"}', "unknown-version"),
        (b'{"type":"cgzsl.feature.v1"}', "unknown-type"),
        (b'{"cut":{"features":{"0":-1}}}', "invalid-field"),
        (b'{"cut":{"features":{"-1":1}}}', "invalid-field"),
        (b'{"cut":3}', "invalid-field"),
        (b'{"reason":""}', "invalid-field"),
        (b'{"surprise":1}', "invalid-field"),
    ],
)
def test_hostile_control_records_become_dead_letters(
    producer: Producer, markers: Markers, stream: Stream, value: bytes, reason: str
) -> None:
    producer.send("control", Message(None, value))
    assert markers.look(stream) is None
    dead, control = markers.take_dead()
    assert control == Range(start=0, end=1, dead={reason: 1})
    (letter,) = dead
    assert letter.value == value


def test_a_plain_json_boundary_of_a_console_producer_works(
    producer: Producer, markers: Markers, stream: Stream
) -> None:
    producer.send("control", Message(None, b'{"reason": "by hand", "cut": {"features": {"0": 2, "1": 1}}}'))
    cut = markers.look(stream)
    assert cut is not None and (cut.reason, cut.ends["features"]) == ("by hand", {0: 2, 1: 1})


# ---- rollbacks


def test_a_rollback_is_a_window_without_data(producer: Producer, markers: Markers, stream: Stream) -> None:
    markers.next_number = 5
    producer.events("control", Rollback(to=4, reason="oops"))
    assert markers.look(stream) == Cut(
        "rollback", "rollback", "oops", stream.starts, control=Range(start=0, end=1, accepted=1), to=4
    )
