"""Control records: where a boundary cuts, what is wrong with some, and that none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from helpers import CLASSES, TOPICS, Producer, examples, new_bus, sqlite_url

from stream_cgzsl.bus import Bus
from stream_cgzsl.schemas import Boundary, DeadLetter, LedgerRecord, Message, Range, Rollback, decode
from stream_cgzsl.windows.cuts import DATA_ROLES, Cut, Stream
from stream_cgzsl.windows.markers import Markers
from stream_cgzsl.windows.planner import Planner, Policies

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


def told(cut: Cut | None) -> list[tuple[str, str]]:
    """Reason and detail of the dead letters in a cut."""
    assert cut is not None
    found = [decode("dead-letters", m.key, m.value, m.headers) for m in cut.dead]
    return [(letter.reason, letter.detail) for letter in found if isinstance(letter, DeadLetter)]


# ---- where a boundary cuts


def test_without_control_records_no_window_closes(markers: Markers, stream: Stream) -> None:
    assert markers.look(stream) is None


def test_a_boundary_without_a_cut_takes_what_is_there_when_it_is_read(
    producer: Producer, markers: Markers, stream: Stream
) -> None:
    producer.events("control", Boundary(reason="task 1"))
    producer.events("features", *_features(A), partition=0)
    ends = stream.all_ends()
    assert markers.look(stream) == Cut("train", "task 1", ends, control=Range(start=0, end=1, accepted=1))
    assert ends["features"] == {0: 6, 1: 3}


def test_a_boundary_with_a_cut_takes_just_that(producer: Producer, markers: Markers, stream: Stream) -> None:
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


def test_markers_resume_behind_the_last_one_in_the_ledger(bus: Bus, producer: Producer, stream: Stream) -> None:
    producer.events("control", Boundary(reason="old"), Boundary(reason="new"))
    with closing(Markers(bus, TOPICS, 1)) as markers:
        cut = markers.look(stream)
    assert cut is not None and (cut.reason, cut.control) == ("new", Range(start=1, end=2, accepted=1))


# ---- what is wrong with some


@pytest.mark.parametrize(
    ("event", "reason", "found"),
    [
        (
            Boundary(cut={"features": {0: 4}}),
            "cut-beyond-end",
            "the cut has features/0 end at 4, and it ends at 3; expected offsets of acknowledged records. "
            "Flush the producers, then ask for end offsets, then send the boundary.",
        ),
        (
            Boundary(cut={"features": {7: 0}}),
            "cut-beyond-end",
            "the cut has features/7 end at 0, and it ends at None; expected offsets of acknowledged records. "
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
    ids=["beyond the end", "no such partition", "no such role", "rollback to nowhere"],
)
def test_a_control_record_that_cannot_be_followed_is_buried_and_the_stream_goes_on(
    producer: Producer, markers: Markers, stream: Stream, event: Any, reason: str, found: str
) -> None:
    producer.events("control", event, Boundary(reason="next"))
    cut = markers.look(stream)
    assert told(cut) == [(reason, f"t.control/0 offset 0: {reason}: {found}")]
    assert cut is not None
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
def test_hostile_control_records_are_buried(
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


def test_a_rollback_closes_a_window_without_data(producer: Producer, markers: Markers, stream: Stream) -> None:
    markers.next_number = 5
    producer.events("control", Rollback(to=4, reason="oops"))
    assert markers.look(stream) == Cut(
        "rollback", "oops", stream.starts, control=Range(start=0, end=1, accepted=1), to=4
    )


# ---- all policies together


def ledger_record(bus: Bus) -> LedgerRecord:
    """A genesis at the beginning of every topic."""
    return LedgerRecord(
        number=0,
        kind="genesis",
        reason="genesis",
        ranges={
            role: {p: Range(start=0, end=0) for p in bus.end_offsets(TOPICS[role])}
            for role in ("attributes", "features", "control")
        },
        holdout=bus.begin_offsets(TOPICS["holdout"]),
        configuration_digest="0" * 64,
        code="0",
    )


def after(last: LedgerRecord, cut: Cut) -> LedgerRecord:
    """What the ledger would say after a cut."""
    ranges = {
        role: {p: Range(start=0, end=e) for p, e in cut.ends[role].items()} for role in ("attributes", "features")
    }
    return last.model_copy(
        update={
            "number": last.number + 1,
            "ranges": {**ranges, "control": {0: cut.control}},
            "holdout": cut.ends["holdout"],
        }
    )


def test_bad_control_records_go_into_the_next_window_whoever_closes_it(bus: Bus, producer: Producer) -> None:
    producer.send("control", Message(None, b"bad"), Message(None, b"worse"))
    last = ledger_record(bus)
    with closing(Planner(bus, TOPICS, Policies(quiet=1e9, count=6), last, None, lambda: 0.0)) as planner:
        cut = planner.look(last)
        assert cut is not None and cut.reason == "count"
        assert [reason for reason, _ in told(cut)] == ["not-json", "not-json"]
        assert cut.control == Range(start=0, end=2, dead={"not-json": 2})
        last = after(last, cut)
        producer.boundary("then")
        cut = planner.look(last)
    assert cut is not None and (told(cut), cut.control) == ([], Range(start=2, end=3, accepted=1))


def test_bad_control_records_are_not_lost_with_the_process_that_read_them(bus: Bus, producer: Producer) -> None:
    producer.send("control", Message(None, b"bad"))
    last = ledger_record(bus)
    for _ in range(2):  # the second one finds the ledger as the first found it
        with closing(Planner(bus, TOPICS, Policies(quiet=1e9), last, None, lambda: 0.0)) as planner:
            assert planner.look(last) is None
    producer.boundary()
    with closing(Planner(bus, TOPICS, Policies(quiet=1e9), last, None, lambda: 0.0)) as planner:
        cut = planner.look(last)
    assert [reason for reason, _ in told(cut)] == ["not-json"]


def test_a_marker_goes_before_every_other_policy(bus: Bus, producer: Producer) -> None:
    producer.boundary("mine")
    last = ledger_record(bus)
    with closing(Planner(bus, TOPICS, Policies(quiet=1e-9, count=1), last, None, lambda: 0.0)) as planner:
        reasons = []
        while cut := planner.look(last):
            reasons.append(cut.reason)
            last = after(last, cut)
    assert reasons == ["mine"]


def test_the_first_policy_that_has_a_number_wins_and_the_others_go_on(bus: Bus, producer: Producer) -> None:
    time = iter(range(100, 1000, 10))
    last = ledger_record(bus)
    with closing(Planner(bus, TOPICS, Policies(quiet=5, count=4), last, None, lambda: float(next(time)))) as planner:
        reasons = []
        while cut := planner.look(last) or planner.look(last):
            reasons.append((cut.reason, sum(cut.ends["features"].values())))
            last = after(last, cut)
            if len(reasons) == 1:
                producer.describe(CLASSES[2])
    assert reasons == [("count", 4), ("describe", 4)]


def test_the_backlog_is_what_waits_behind_the_last_window(bus: Bus) -> None:
    last = ledger_record(bus)
    with closing(Planner(bus, TOPICS, Policies(count=5), last, None, lambda: 0.0)) as planner:
        cut = planner.look(last)
        assert cut is not None
        last = after(last, cut)
        planner.look(last)
        assert planner.waiting(last) == {"attributes": 0, "features": 1, "control": 0}


def test_a_marker_waits_until_its_window_is_committed_but_an_unusable_one_is_not_waited_for(bus: Bus) -> None:
    last = ledger_record(bus)
    producer = Producer(bus)
    with closing(Planner(bus, TOPICS, Policies(), last, None, lambda: 0.0)) as planner:
        producer.send("control", Message(None, b"?"))
        assert planner.look(last) is None
        assert planner.waiting(last)["control"] == 0
        producer.boundary()
        cut = planner.look(last)
        assert cut is not None
        assert planner.waiting(last)["control"] == 2  # both go with the window that is open
        last = after(last, cut)
        assert planner.look(last) is None
        assert planner.waiting(last)["control"] == 0
