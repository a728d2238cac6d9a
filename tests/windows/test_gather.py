"""A window is what lies between two cuts: the order of delivery changes nothing, and every record is accounted for."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import (
    CLASSES,
    GENESIS,
    TOPICS,
    Producer,
    assert_same_window,
    begin_ends,
    description,
    examples,
    new_bus,
    sqlite_url,
)

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import Cancelled, Expired
from stream_cgzsl.schemas import Attribute, Encoding, Event, Feature, Range, Retirement, encode
from stream_cgzsl.windows.gather import Gathered, Gatherer
from stream_cgzsl.windows.validation import hash_id

A, B, C = CLASSES[:3]
NOBODY: frozenset[str] = frozenset()
T0 = datetime(2025, 1, 31, tzinfo=UTC)
T1 = T0 + timedelta(seconds=1)


def gather(bus: Bus, poll: int = 1000, budget: int = 10**9, **more: Any) -> Gathered:
    """Everything that is on the bus, as window 1."""
    begins, ends = begin_ends(bus)
    arguments = {"live": NOBODY, "known_ids": frozenset(), **more}
    return Gatherer(bus, TOPICS, GENESIS, budget, poll).gather(1, begins, ends, **arguments)


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path)) as bus:
        yield bus


@pytest.fixture
def producer(bus: Bus) -> Producer:
    return Producer(bus)


def test_a_window_holds_descriptions_and_examples_by_class(bus: Bus, producer: Producer) -> None:
    producer.describe(C, A)
    producer.teach(C, A, rows=4)
    gathered = gather(bus)
    window = gathered.window
    assert [d.class_id for d in window.described] == sorted([A, C])
    assert [d.name for d in window.described] == [description(c).name for c in sorted([A, C])]
    assert window.retired == ()
    for class_id in (A, C):
        ordered = sorted(examples([class_id], 4), key=lambda e: hash_id("features", e.id or ""))
        np.testing.assert_array_equal(window.features[class_id].rows, np.stack([e.vector for e in ordered]))
        assert window.features[class_id].count == 4
    assert gathered.ranges == {
        "attributes": {0: Range(start=0, end=2, accepted=2)},
        "features": {0: Range(start=0, end=8, accepted=8)},
    }
    assert gathered.dead == []
    assert gathered.ids == {hash_id("features", e.id or "") for e in examples([A, C], 4)}


# ---- delivery does not matter


def events_of(class_ids: tuple[str, ...], dtype: type = np.float32) -> list[tuple[str, Event]]:
    """The same events in numbers that every format represents exactly; some have no id, some are sent twice."""
    rng = np.random.default_rng(5)
    events: list[tuple[str, Event]] = [
        ("attributes", Attribute(class_id=c, vector=rng.integers(0, 9, 8).astype(dtype), name=f"n {c}"))
        for c in class_ids
    ]
    for class_id in class_ids:
        for number in range(6):
            vector = (rng.integers(0, 2048, 16) / 256).astype(dtype)
            events.append(("features", Feature(class_id=class_id, vector=vector, id=f"{class_id}{number}")))
            if number == 2:
                events.append(("features", Feature(class_id=class_id, vector=vector)))
            if number == 3:
                events.append(events[-1])
    return events


def gathered_from(
    directory: Path, partitions: int, poll: int, encoding: Encoding, dtype: type, budget: int, shuffle: int
) -> Gathered:
    with new_bus(sqlite_url(directory, f"{partitions}-{poll}-{encoding}-{dtype.__name__}"), partitions) as bus:
        producer = Producer(bus, encoding=encoding)
        events = events_of((A, B, C), dtype)
        for number in np.random.default_rng(shuffle).permutation(len(events)):
            role, event = events[number]
            producer.events(role, event)
        return gather(bus, poll, budget)


@pytest.mark.parametrize(
    ("partitions", "poll", "encoding", "dtype"),
    [
        (4, 1000, "binary", np.float32),
        (1, 1, "binary", np.float32),
        (4, 3, "binary", np.float32),
        (1, 1000, "json", np.float32),
        (1, 1000, "binary", np.float16),
        (3, 2, "json", np.float16),
    ],
)
@pytest.mark.parametrize(("budget", "kept"), [(10**9, 21), (8 * 16 * 4, 6)], ids=["all kept", "two per class"])
def test_partitions_polls_encoding_and_order_do_not_matter(
    tmp_path: Path, partitions: int, poll: int, encoding: Encoding, dtype: type, budget: int, kept: int
) -> None:
    plain = gathered_from(tmp_path, 1, 1000, "binary", np.float32, budget, shuffle=0)
    other = gathered_from(tmp_path, partitions, poll, encoding, dtype, budget, shuffle=1)
    assert_same_window(plain, other)
    assert plain.ids == other.ids
    assert sum(len(e.rows) for e in plain.window.features.values()) == kept


def test_one_changed_number_changes_the_digest(tmp_path: Path) -> None:
    digests = set()
    for name, nudge in (("same", 0.0), ("again", 0.0), ("changed", 1e-6)):
        with new_bus(sqlite_url(tmp_path, name)) as bus:
            producer = Producer(bus)
            producer.describe(A)
            first, *rest = examples([A], 3)
            nudged = first.vector.copy()
            nudged[0] += nudge
            producer.events("features", Feature(class_id=A, vector=nudged, id=first.id), *rest)
            digests.add(gather(bus).inputs.result())
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("role", "event"),
    [
        ("attributes", Retirement(class_id=A)),
        ("attributes", description(A).model_copy(update={"name": "another"})),
        ("attributes", description(B)),
        ("features", Feature(class_id=A, vector=np.ones(16, np.float32))),
    ],
    ids=["retirement", "name", "class", "feature"],
)
def test_every_kind_of_input_changes_the_digest(bus: Bus, producer: Producer, role: str, event: Event) -> None:
    producer.describe(A)
    before = gather(bus).inputs.result()
    producer.events(role, event)
    assert gather(bus, live=frozenset([A])).inputs.result() != before


# ---- cuts


def test_only_what_lies_between_the_cuts_is_read(bus: Bus, producer: Producer) -> None:
    producer.describe(A, B, C)
    producer.teach(A, B, C, rows=3)
    starts = {"attributes": {0: 1}, "features": {0: 4}}
    ends = {"attributes": {0: 2}, "features": {0: 6}}
    gathered = Gatherer(bus, TOPICS, GENESIS, 10**9, 2).gather(7, starts, ends, frozenset([A]), frozenset())
    assert [d.class_id for d in gathered.window.described] == [B]
    assert {c: e.count for c, e in gathered.window.features.items()} == {B: 2}
    assert gathered.ranges == {
        "attributes": {0: Range(start=1, end=2, accepted=1)},
        "features": {0: Range(start=4, end=6, accepted=2)},
    }


def test_an_empty_cut_reads_nothing(bus: Bus) -> None:
    gathered = gather(bus)
    assert (gathered.window.described, gathered.window.features, gathered.dead) == ((), {}, [])
    assert gathered.ranges == {"attributes": {0: Range(start=0, end=0)}, "features": {0: Range(start=0, end=0)}}


def test_a_partition_added_later_is_read_from_its_beginning(tmp_path: Path) -> None:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        producer = Producer(bus)
        producer.describe(A)
        for partition in (0, 1):
            producer.events("features", *examples([A], 2, partition), partition=partition)
        starts = {"attributes": {0: 0, 1: 0}, "features": {0: 2}}
        ends = {"attributes": bus.end_offsets(TOPICS["attributes"]), "features": {0: 2, 1: 2}}
        gathered = Gatherer(bus, TOPICS, GENESIS, 10**9).gather(1, starts, ends, NOBODY, frozenset())
    assert gathered.ranges["features"] == {0: Range(start=2, end=2), 1: Range(start=0, end=2, accepted=2)}


def test_a_cut_after_the_end_of_a_topic_is_an_error_not_an_endless_wait(bus: Bus, producer: Producer) -> None:
    producer.describe(A)
    producer.teach(A, rows=3)
    starts, ends = begin_ends(bus)
    ends["features"][0] += 1
    with pytest.raises(Expired, match=r"t\.features/0.*ends at 3.*4"):
        Gatherer(bus, TOPICS, GENESIS, 10**9).gather(1, starts, ends, NOBODY, frozenset())


def test_reading_can_be_stopped(bus: Bus, producer: Producer) -> None:
    producer.describe(A)
    producer.teach(A, rows=30)
    asked = 0

    def alive() -> None:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        gather(bus, poll=5, alive=alive)
    assert asked == 3


def test_transaction_markers_and_aborted_records_are_skipped(kafka_url: str) -> None:
    """The last offset of the cut is a marker, so no record will ever come from it."""
    topics = Topics(f"gather-{uuid.uuid4().hex[:8]}")
    first, second, third = examples([A], 3)
    with new_bus(kafka_url, 1, topics) as bus:
        Producer(bus, topics).describe(A)
        with bus.publisher(f"{topics.prefix}.producer") as publisher:
            for event, kept in ((first, True), (second, False), (third, True)):
                publisher.begin()
                publisher.send(topics["features"], encode(event))
                publisher.flush()
                if kept:
                    publisher.commit()
                else:
                    publisher.abort()
        starts, ends = begin_ends(bus, topics)
        gathered = Gatherer(bus, topics, GENESIS, 10**9).gather(1, starts, ends, NOBODY, frozenset())
    assert gathered.ranges["features"] == {0: Range(start=0, end=6, accepted=2)}
    assert gathered.ids == {hash_id("features", e.id or "") for e in (first, third)}


# ---- classes come and go


def test_of_two_descriptions_of_a_class_the_last_counts(bus: Bus, producer: Producer) -> None:
    newer = Attribute(class_id=A, vector=np.full(8, 2, np.float32), name="newer")
    producer.events("attributes", description(A), newer)
    gathered = gather(bus)
    (described,) = gathered.window.described
    assert (described.name, described.vector.tolist()) == ("newer", [2.0] * 8)
    assert gathered.ranges["attributes"] == {0: Range(start=0, end=2, accepted=2)}


@pytest.mark.parametrize(
    ("changes", "described", "retired", "dead"),
    [
        ([description(A), Retirement(class_id=A)], (), (A,), {"unknown-class": 1}),
        ([Retirement(class_id=A), description(A)], (A,), (A,), {}),
        ([Retirement(class_id=A)], (), (A,), {"unknown-class": 1}),
        ([], (), (), {}),
    ],
    ids=["described then retired", "retired then described", "retired", "unchanged"],
)
def test_features_belong_to_the_classes_as_they_are_after_the_window(
    bus: Bus,
    producer: Producer,
    changes: list[Event],
    described: tuple[str, ...],
    retired: tuple[str, ...],
    dead: dict[str, int],
) -> None:
    producer.events("attributes", *changes)
    producer.teach(A, rows=1)
    gathered = gather(bus, live=frozenset([A]))
    assert tuple(d.class_id for d in gathered.window.described) == described
    assert gathered.window.retired == retired
    assert gathered.ranges["features"] == {0: Range(start=0, end=1, accepted=1 - sum(dead.values()), dead=dead)}


# ---- duplicates


def test_of_two_records_with_one_id_the_lowest_partition_and_offset_wins(tmp_path: Path) -> None:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        producer = Producer(bus)
        producer.describe(A, B)
        later = Feature(class_id=A, vector=np.full(16, 2, np.float32), id="x")
        winner = Feature(class_id=A, vector=np.full(16, 1, np.float32), id="x")
        other = Feature(class_id=B, vector=np.full(16, 3, np.float32), id="x")
        producer.events("features", later, partition=1)
        producer.events("features", winner, other, partition=0)
        gathered = gather(bus)
    assert {c: e.rows.tolist() for c, e in gathered.window.features.items()} == {A: [[1.0] * 16]}
    assert gathered.ranges["features"] == {
        0: Range(start=0, end=2, accepted=1, duplicate=1),
        1: Range(start=0, end=1, duplicate=1),
    }


def test_ids_of_earlier_windows_are_duplicates_too(bus: Bus, producer: Producer) -> None:
    producer.describe(A)
    producer.teach(A, rows=3)
    known = frozenset(hash_id("features", e.id or "") for e in examples([A], 2))
    gathered = gather(bus, known_ids=known)
    assert gathered.ranges["features"] == {0: Range(start=0, end=3, accepted=1, duplicate=2)}
    assert gathered.ids == {hash_id("features", examples([A], 3)[2].id or "")}


def test_of_revisions_in_several_partitions_the_latest_counts(tmp_path: Path) -> None:
    """A topic that was given more partitions: the same class is in another one from then on."""
    with new_bus(sqlite_url(tmp_path, "grown"), 2) as bus:
        producer = Producer(bus)

        def revise(class_id: str, partition: int, seconds: int, number: float | None) -> None:
            time = T0 + timedelta(seconds=seconds)
            vector = np.full(8, number or 0, np.float32)
            message = encode(
                Retirement(class_id=class_id)
                if number is None
                else Attribute(class_id=class_id, vector=vector, time=time)
            )
            stamp = int(time.timestamp() * 1000)
            producer.send("attributes", message._replace(timestamp_ms=stamp), partition=partition)

        revise(A, 1, 0, 1.0)
        revise(A, 0, 5, 2.0)
        revise(B, 1, 1, 1.0)
        revise(B, 1, 0, 2.0)  # its producer's clock was set back
        revise(C, 0, 7, None)
        revise(C, 1, 6, 1.0)
        window = gather(bus).window
    assert {d.class_id: float(d.vector[0]) for d in window.described} == {A: 2.0, B: 2.0}
    assert window.retired == (C,)


def test_equal_ids_on_two_topics_are_not_duplicates(bus: Bus, producer: Producer) -> None:
    producer.events("attributes", description(A).model_copy(update={"id": "1"}))
    producer.events("features", Feature(class_id=A, vector=np.ones(16, np.float32), id="1"))
    assert [spans[0].accepted for spans in gather(bus).ranges.values()] == [1, 1]


def test_a_description_with_a_known_id_counts_once(bus: Bus, producer: Producer) -> None:
    once = description(A).model_copy(update={"id": "1"})
    producer.events("attributes", once, once.model_copy(update={"name": "other"}))
    gathered = gather(bus)
    assert [d.name for d in gathered.window.described] == [once.name]
    assert gathered.ranges["attributes"] == {0: Range(start=0, end=2, accepted=1, duplicate=1)}


def test_records_without_an_id_are_never_duplicates(bus: Bus, producer: Producer) -> None:
    producer.describe(A)
    producer.events("features", *[Feature(class_id=A, vector=np.ones(16, np.float32))] * 3)
    gathered = gather(bus)
    assert gathered.window.features[A].rows.tolist() == [[1.0] * 16] * 3
    assert gathered.ids == frozenset()


def test_a_record_that_was_invalid_is_not_a_duplicate_when_it_is_redriven(bus: Bus, producer: Producer) -> None:
    producer.teach(A, rows=1)
    refused = gather(bus)
    assert (refused.ids, refused.ranges["features"][0].dead) == (frozenset(), {"unknown-class": 1})
    producer.describe(A)
    redriven = gather(bus, known_ids=refused.ids)
    assert redriven.ranges["features"] == {0: Range(start=0, end=1, accepted=1)}


def test_features_before_the_last_event_time_are_late_but_count(bus: Bus, producer: Producer) -> None:
    producer.describe(A)
    early, late = (Feature(class_id=A, vector=np.full(16, n, np.float32), time=t) for n, t in ((1, T1), (2, T0)))
    producer.events("features", early, late)
    gathered = gather(bus, late_before=int(T1.timestamp() * 1000))
    assert gathered.ranges["features"] == {0: Range(start=0, end=2, accepted=2, late=1)}
    assert gathered.window.features[A].count == 2


def test_negative_numbers_are_valid_in_a_signed_stream(bus: Bus, producer: Producer) -> None:
    producer.describe(A)
    producer.events("features", Feature(class_id=A, vector=np.full(16, -1, np.float32)))
    signed = GENESIS.model_copy(update={"signed": True})
    gathered = Gatherer(bus, TOPICS, signed, 10**9).gather(1, *begin_ends(bus), NOBODY, frozenset())
    assert (gathered.dead, gathered.window.features[A].count) == ([], 1)
