"""When and where a window closes: each policy alone, on a real file, with a clock that the test sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from helpers import CLASSES, TOPICS, Producer, new_bus, sqlite_url

from stream_cgzsl.bus import Bus
from stream_cgzsl.schemas import Feature
from stream_cgzsl.windows.cuts import Count, Cut, Describe, EventTime, MaxAge, Policy, Stream
from stream_cgzsl.windows.offsets import DATA_ROLES

A, B, C = CLASSES[:3]


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


@pytest.fixture
def stream(bus: Bus, clock: Clock) -> Stream:
    stream = Stream(bus, TOPICS, clock)
    stream.starts = {role: bus.begin_offsets(TOPICS[role]) for role in DATA_ROLES}
    return stream


def look(policy: Policy, stream: Stream) -> Cut | None:
    """Asks the policy. If the window closes, the next one starts where it ended, as in a planner."""
    cut = policy.look(stream)
    if cut is not None:
        stream.starts = {role: dict(ends) for role, ends in cut.ends.items()}
    return cut


def features(bus: Bus, counts: dict[int, int], time_ms: int | None = None) -> None:
    """Sends so many features to each partition, with this event time."""
    time = None if time_ms is None else datetime.fromtimestamp(time_ms / 1000, UTC)
    event = Feature(class_id=A, vector=np.ones(16, np.float32), time=time)
    for partition, count in counts.items():
        Producer(bus).events("features", *[event] * count, partition=partition)


# ---- describe


def test_an_idle_stream_has_no_windows(stream: Stream, clock: Clock) -> None:
    policy = Describe(2.0)
    for _ in range(3):
        assert look(policy, stream) is None
        clock.now += 100


def test_descriptions_close_a_window_after_a_pause(bus: Bus, stream: Stream, clock: Clock) -> None:
    policy = Describe(2.0)
    look(policy, stream)
    features(bus, {0: 3})
    Producer(bus).describe(A)
    assert look(policy, stream) is None
    clock.now += 1.9
    assert look(policy, stream) is None
    clock.now += 0.1
    ends = bus.end_offsets(TOPICS["attributes"])
    assert look(policy, stream) == Cut(
        "describe", "describe", "describe", {"attributes": ends, "features": {0: 0, 1: 0}, "holdout": {0: 0, 1: 0}}
    )
    clock.now += 100
    assert look(policy, stream) is None


def test_every_description_restarts_the_pause(bus: Bus, stream: Stream, clock: Clock) -> None:
    policy, producer = Describe(2.0), Producer(bus)
    for class_id in (A, B, C):
        producer.describe(class_id)
        assert look(policy, stream) is None
        clock.now += 1.5
        assert look(policy, stream) is None
    clock.now += 0.5
    cut = look(policy, stream)
    assert cut is not None and sum(cut.ends["attributes"].values()) == 3


def test_a_producer_that_never_pauses_is_not_waited_for_forever(bus: Bus, stream: Stream, clock: Clock) -> None:
    policy, producer = Describe(2.0), Producer(bus)
    closed = []
    for second in range(31):
        producer.describe(A)
        if look(policy, stream) is not None:
            closed.append(second)
        clock.now += 1
    assert closed == [10, 21]


def test_a_description_that_arrives_while_a_window_is_learned_has_its_own_pause(
    bus: Bus, stream: Stream, clock: Clock
) -> None:
    """Another policy closed the window in between: the old pause must not count for a new description."""
    policy, producer = Describe(2.0), Producer(bus)
    producer.describe(A)
    assert look(policy, stream) is None
    producer.describe(B)
    stream.starts = stream.all_ends()
    clock.now += 60
    producer.describe(C)
    assert look(policy, stream) is None
    clock.now += 2
    assert look(policy, stream) is not None


# ---- count


def test_a_window_closes_at_its_count(bus: Bus, stream: Stream) -> None:
    policy = Count(5)
    features(bus, {0: 4})
    assert look(policy, stream) is None
    features(bus, {1: 1})
    Producer(bus).describe(A)
    assert look(policy, stream) == Cut(
        "train",
        "count",
        "count",
        {"features": {0: 4, 1: 1}, "attributes": bus.end_offsets(TOPICS["attributes"]), "holdout": {0: 0, 1: 0}},
    )


@pytest.mark.parametrize(
    ("waiting", "taken"),
    [
        ({0: 10, 1: 10}, {0: 3, 1: 3}),
        ({0: 20, 1: 0}, {0: 6, 1: 0}),
        ({0: 50, 1: 10}, {0: 5, 1: 1}),
        ({0: 7, 1: 6}, {0: 3, 1: 3}),
        ({0: 100, 1: 1}, {0: 6, 1: 0}),
    ],
)
def test_partitions_contribute_in_proportion_to_their_backlog(
    bus: Bus, stream: Stream, waiting: dict[int, int], taken: dict[int, int]
) -> None:
    features(bus, waiting)
    cut = look(Count(6), stream)
    assert cut is not None and cut.ends["features"] == taken


def test_a_backlog_is_processed_window_by_window_and_no_partition_starves(bus: Bus, stream: Stream) -> None:
    features(bus, {0: 30, 1: 3})
    policy, sizes = Count(10), []
    while cut := policy.look(stream):
        sizes.append(stream.backlog("features", cut.ends["features"]))
        stream.starts = cut.ends
    assert sizes == [10, 10, 10]
    features(bus, {0: 7})
    assert look(policy, stream) is not None
    assert stream.starts["features"] == {0: 37, 1: 3}


# ---- max-age


def test_the_age_counts_from_the_first_feature_noticed(bus: Bus, stream: Stream, clock: Clock) -> None:
    policy = MaxAge(10)
    assert look(policy, stream) is None
    clock.now += 100
    features(bus, {0: 1})
    assert look(policy, stream) is None
    clock.now += 9
    features(bus, {1: 2})
    assert look(policy, stream) is None
    clock.now += 1
    cut = look(policy, stream)
    assert cut is not None and (cut.kind, cut.policy, cut.ends["features"]) == ("train", "max-age", {0: 1, 1: 2})
    features(bus, {0: 1})
    clock.now += 5
    assert look(policy, stream) is None
    clock.now += 10
    assert look(policy, stream) is not None


def test_the_age_starts_again_after_a_window_that_another_policy_closed(bus: Bus, stream: Stream, clock: Clock) -> None:
    policy = MaxAge(10)
    features(bus, {0: 1})
    look(policy, stream)
    clock.now += 9
    stream.starts = stream.all_ends()
    features(bus, {0: 1})
    clock.now += 1
    assert look(policy, stream) is None


# ---- event time


def test_an_event_time_window_closes_when_every_partition_has_passed_its_end(bus: Bus, stream: Stream) -> None:
    policy = EventTime(10, 0, 1e9, None)
    features(bus, {0: 2, 1: 1}, 12_000)
    assert look(policy, stream) is None
    features(bus, {0: 1}, 20_000)
    assert look(policy, stream) is None
    features(bus, {1: 1}, 29_000)
    cut = look(policy, stream)
    assert cut is not None
    assert (cut.kind, cut.policy, cut.ends["features"], cut.until_ms) == ("train", "event-time", {0: 2, 1: 1}, 20_000)
    features(bus, {0: 1, 1: 1}, 30_000)
    cut = look(policy, stream)
    assert cut is not None and (cut.ends["features"], cut.until_ms) == ({0: 3, 1: 2}, 30_000)


def test_a_delay_leaves_time_for_late_records(bus: Bus, stream: Stream) -> None:
    policy = EventTime(10, 5, 1e9, None)
    features(bus, {0: 1, 1: 1}, 12_000)
    features(bus, {0: 1, 1: 1}, 24_000)
    assert look(policy, stream) is None
    features(bus, {0: 1, 1: 1}, 25_000)
    cut = look(policy, stream)
    assert cut is not None and cut.ends["features"] == {0: 1, 1: 1}


def test_an_idle_partition_is_not_waited_for(bus: Bus, stream: Stream, clock: Clock) -> None:
    policy = EventTime(10, 0, 30, None)
    look(policy, stream)
    clock.now += 29
    features(bus, {0: 1}, 12_000)
    features(bus, {0: 1}, 20_000)
    assert look(policy, stream) is None
    clock.now += 1
    cut = look(policy, stream)
    assert cut is not None and cut.ends["features"] == {0: 1, 1: 0}


def test_a_partition_whose_clock_stands_still_is_not_waited_for(bus: Bus, stream: Stream, clock: Clock) -> None:
    policy = EventTime(10, 0, 30, None)
    features(bus, {0: 2}, 5_000)
    features(bus, {0: 1}, 11_000)
    for _ in range(3):
        features(bus, {1: 1}, 3_000)  # it never pauses
        assert look(policy, stream) is None
        clock.now += 10
    features(bus, {1: 1}, 3_000)
    cut = look(policy, stream)
    assert cut is not None
    assert cut.ends["features"] == {0: 2, 1: 4}


def test_a_partition_that_catches_up_is_waited_for(bus: Bus, stream: Stream, clock: Clock) -> None:
    policy = EventTime(10, 0, 30, None)
    features(bus, {0: 1}, 11_000)
    for second in range(1, 10):
        features(bus, {1: 1}, 1000 * second)
        assert look(policy, stream) is None
        clock.now += 29
    features(bus, {1: 1}, 10_000)
    cut = look(policy, stream)
    assert cut is not None
    assert cut.ends["features"] == {0: 0, 1: 9}


def test_late_records_join_the_next_window(bus: Bus, stream: Stream) -> None:
    policy = EventTime(10, 0, 1e9, None)
    features(bus, {0: 1, 1: 1}, 12_000)
    features(bus, {0: 1, 1: 1}, 21_000)
    assert look(policy, stream) is not None
    features(bus, {0: 1}, 15_000)
    features(bus, {0: 1, 1: 1}, 31_000)
    cut = look(policy, stream)
    assert cut is not None and (cut.ends["features"], cut.until_ms) == ({0: 3, 1: 2}, 30_000)


def test_event_time_continues_where_the_ledger_ended(bus: Bus, stream: Stream) -> None:
    policy = EventTime(10, 0, 1e9, until_ms=40_000)
    features(bus, {0: 1, 1: 1}, 12_000)
    features(bus, {0: 1, 1: 1}, 45_000)
    assert look(policy, stream) is None
    features(bus, {0: 1, 1: 1}, 50_000)
    cut = look(policy, stream)
    assert cut is not None and (cut.ends["features"], cut.until_ms) == ({0: 2, 1: 2}, 50_000)


def test_a_producer_whose_clock_is_ahead_does_not_stop_the_stream(bus: Bus, stream: Stream) -> None:
    """A record of tomorrow was learned in a window closed by a marker; today's records must still be learned."""
    policy = EventTime(10, 0, 1e9, None)
    features(bus, {0: 1, 1: 1}, 86_400_000)
    stream.starts = stream.all_ends()
    features(bus, {0: 1, 1: 1}, 12_000)
    features(bus, {0: 1, 1: 1}, 21_000)
    cut = look(policy, stream)
    assert cut is not None and stream.starts["features"] != {0: 1, 1: 1}


# ---- what every policy relies on


def test_a_class_described_before_its_feature_is_never_cut_from_it(bus: Bus, stream: Stream) -> None:
    """Both arrive while the ends are looked up: the cut has the description and not the feature."""
    original, sent = bus.end_offsets, False

    def end_offsets(topic: str) -> dict[int, int]:
        nonlocal sent
        found = original(topic)
        if not sent:
            sent = True
            Producer(bus).describe(A)
            features(bus, {0: 1})
        return found

    bus.end_offsets = end_offsets  # type: ignore[method-assign]
    ends = stream.all_ends()
    assert (sum(ends["features"].values()), sum(ends["attributes"].values())) == (0, 1)


def test_a_recreated_topic_never_ends_before_the_window_starts(stream: Stream) -> None:
    stream.starts["features"] = {0: 7, 1: 0}
    assert stream.ends("features") == {0: 7, 1: 0}
