"""A data set on a stream: what a task sends, where it is cut, and how an interrupted feed resumes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from helpers import NO_DESCRIBE, Producer, learner, new_bus, read, settings_for, sqlite_url, wait_for_window

from stream_cgzsl.benchmark.datasets import Dataset, load
from stream_cgzsl.benchmark.feeding import ROLES, Feeder
from stream_cgzsl.benchmark.protocols import Plan, plan_for, windows
from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import TopicMisconfigured, UsageError
from stream_cgzsl.learners import create
from stream_cgzsl.schemas import Attribute, Boundary, Feature, FeedTask, decode, encode
from stream_cgzsl.serving.generation_io import load_generation

DATA = load("synthetic:classes=8,unseen=2,attributes=8,features=16,rows=6,test=3")
PLAN = Plan("online", tasks=2, seen=3, unseen=1, held_back=1)
TOPICS = Topics("fed")
FEED = f"{DATA.name} made up {DATA.digest[:8]} online 2x(3+1)"


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with connect(sqlite_url(tmp_path)) as connected:
        yield connected


def events(bus: Bus, role: str, topics: Topics = TOPICS) -> list[Any]:
    return [decode(role, r.key, r.value, r.headers) for r in read(bus, topics[role])]


def ids(bus: Bus) -> dict[str, Counter[str]]:
    return {role: Counter(event.id for event in events(bus, role)) for role in ROLES}


@pytest.fixture(scope="module")
def whole_feed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counter[str]]:
    """The ids on the bus after a feed without interruption."""
    with connect(sqlite_url(tmp_path_factory.mktemp("whole"))) as bus:
        feeder = Feeder(bus, TOPICS, DATA, PLAN)
        for task in feeder.tasks:
            feeder.feed(task)
        return ids(bus)


# ---- what is sent


def test_missing_topics_are_created_as_they_must_be(bus: Bus) -> None:
    Feeder(bus, TOPICS, DATA, PLAN, partitions=3)
    assert {spec.name: spec for spec in bus.topics().values()} == {spec.name: spec for spec in TOPICS.specs(3)}


def test_a_task_sends_its_classes_its_rows_and_a_boundary(bus: Bus) -> None:
    feeder = Feeder(bus, TOPICS, DATA, PLAN, partitions=1)
    (task, _) = feeder.tasks
    feeder.feed(task)
    described = [(event.class_id, event.vector.tolist()) for event in events(bus, "attributes")]
    assert described == [(class_id, DATA.vector(class_id).tolist()) for class_id in task.described]
    features, holdout = events(bus, "features"), events(bus, "holdout")
    assert [event.class_id for event in features] == [c for c in task.learned for _ in range(6)]
    assert np.array_equal(
        [event.vector for event in features], np.concatenate([DATA.training(c) for c in task.learned])
    )
    assert [event.class_id for event in holdout] == [c for c in task.described for _ in range(3)]
    assert np.array_equal([event.vector for event in holdout], np.concatenate([DATA.test(c) for c in task.described]))
    assert len(features) + len(holdout) + len(described) == feeder.count(task)


def test_the_boundary_cuts_where_the_topics_end(bus: Bus) -> None:
    feeder = Feeder(bus, TOPICS, DATA, PLAN, partitions=2)
    boundaries = [feeder.feed(task) for task in feeder.tasks]
    assert events(bus, "control") == boundaries
    assert boundaries[1].cut == {role: bus.end_offsets(TOPICS[role]) for role in ROLES}
    totals = [{role: sum(ends.values()) for role, ends in (b.cut or {}).items()} for b in boundaries]
    assert totals == [
        {"attributes": 4, "features": 12, "holdout": 12},
        {"attributes": 8, "features": 30, "holdout": 24},
    ]


def test_static_every_class_is_described_and_can_be_tested_from_the_first_task_on(bus: Bus) -> None:
    feeder = Feeder(bus, TOPICS, DATA, Plan("static", 2, 3), partitions=1)
    feeder.feed(feeder.tasks[0])
    assert [event.class_id for event in events(bus, "attributes")] == list(DATA.class_ids)
    assert Counter(event.class_id for event in events(bus, "holdout")) == dict.fromkeys(DATA.class_ids[:6], 3)


# ---- the stream learns what the data set holds


def test_a_stream_gives_the_generations_of_the_library(bus: Bus) -> None:
    """On a stream, rows arrive in another order: the same windows, up to the rounding of their sums."""
    library = create("ridge", DATA.space())
    feeder = Feeder(bus, TOPICS, DATA, PLAN, order=5)
    with learner(settings_for(bus, TOPICS, learner="ridge", **NO_DESCRIBE)) as worker:
        for task in feeder.tasks:
            feeder.feed(task)
        records = [wait_for_window(bus, number, TOPICS, worker.alive) for number in (1, 2)]
    for record, window in zip(records, windows(DATA, PLAN, order=5), strict=True):
        assert record.reason.endswith(f" online 2x(3+1) order 5 task {record.number}")
        streamed, expected = load_generation(bus, TOPICS, record), library.fit(window)
        assert (streamed.class_ids, streamed.seen.tolist()) == (expected.class_ids, expected.seen.tolist())
        np.testing.assert_allclose(streamed.vectors, expected.vectors, rtol=0, atol=1e-4)


# ---- resuming


def test_fed_counts_whole_tasks(bus: Bus) -> None:
    feeder = Feeder(bus, TOPICS, DATA, PLAN)
    counted = [feeder.fed()]
    for task in feeder.tasks:
        feeder.feed(task)
        counted.append(feeder.fed())
    assert counted == [0, 1, 2]


def test_a_task_that_is_complete_is_not_sent_again(bus: Bus) -> None:
    feeder = Feeder(bus, TOPICS, DATA, PLAN)
    first = feeder.feed(feeder.tasks[0])
    before = ids(bus)
    assert Feeder(bus, TOPICS, DATA, PLAN).feed(feeder.tasks[0]) == first
    assert ids(bus) == before


def test_tasks_are_fed_in_their_order(bus: Bus) -> None:
    feeder = Feeder(bus, TOPICS, DATA, PLAN)
    with pytest.raises(UsageError, match="task 2 cannot be fed before task 1"):
        feeder.feed(feeder.tasks[1])


class Interrupted(Exception):
    pass


def stopping_after(records: int) -> Callable[[int], None]:
    left = records

    def sent(count: int) -> None:
        nonlocal left
        left -= count
        if left < 0:
            raise Interrupted

    return sent


@pytest.mark.parametrize("after", [0, 1, 11, 12, 15, 16, 27, 30, 53])
def test_an_interrupted_feed_resumes_and_sends_nothing_twice(
    bus: Bus, whole_feed: dict[str, Counter[str]], after: int
) -> None:
    """Interrupted anywhere in either task: in the holdout, between two topics, before the boundary."""
    first = Feeder(bus, TOPICS, DATA, PLAN, sent=stopping_after(after))
    with pytest.raises(Interrupted):
        for task in first.tasks:
            first.feed(task)
    second = Feeder(bus, TOPICS, DATA, PLAN)
    for task in second.tasks[second.fed() :]:
        second.feed(task)
    assert ids(bus) == whole_feed
    assert [(event.reason, event.feed) for event in events(bus, "control")] == [
        (f"{FEED} task {number}", FeedTask(name=FEED, task=number)) for number in (1, 2)
    ]


def test_a_feed_resumes_after_a_boundary_of_the_old_form(bus: Bus, whole_feed: dict[str, Counter[str]]) -> None:
    """Before boundaries had a feed field, the reason alone identified the task."""
    feeder, producer = Feeder(bus, TOPICS, DATA, PLAN), Producer(bus, TOPICS)
    for role in ROLES:
        producer.events(role, *feeder.events(role, feeder.tasks[0]))
    producer.boundary(f"{FEED} task 1")
    resumed = Feeder(bus, TOPICS, DATA, PLAN)
    assert resumed.fed() == 1
    resumed.feed(resumed.tasks[1])
    assert Feeder(bus, TOPICS, DATA, PLAN).fed() == 2
    assert [event.feed for event in events(bus, "control")] == [None, FeedTask(name=FEED, task=2)]
    assert ids(bus) == whole_feed


def test_the_field_identifies_a_task_whatever_the_reason_says(bus: Bus) -> None:
    feeder, producer = Feeder(bus, TOPICS, DATA, PLAN), Producer(bus, TOPICS)
    producer.events("control", Boundary(reason="monday", feed=FeedTask(name=FEED, task=1)))
    assert feeder.fed() == 1
    producer.events("control", Boundary(reason=f"{FEED} task 2", feed=FeedTask(name="another", task=2)))
    with pytest.raises(UsageError, match="has the tasks of another feed"):
        feeder.fed()


def test_records_already_on_the_bus_count_as_sent(bus: Bus) -> None:
    counts: list[int] = []
    feeder = Feeder(bus, TOPICS, DATA, PLAN)
    producer = Producer(bus, TOPICS)
    task = feeder.tasks[0]
    producer.events("holdout", *list(feeder.events("holdout", task))[:5])
    Feeder(bus, TOPICS, DATA, PLAN, sent=counts.append).feed(task)
    assert sum(counts) == feeder.count(task)


def test_boundaries_and_records_of_others_do_not_matter(bus: Bus) -> None:
    feeder = Feeder(bus, TOPICS, DATA, PLAN)
    producer = Producer(bus, TOPICS)
    producer.events("attributes", Attribute(class_id="emu", vector=DATA.vector(DATA.class_ids[0])))
    producer.events("features", Feature(class_id="emu", vector=DATA.features[0]))
    producer.boundary("by hand")
    producer.boundary(f"{FEED} order 3 task 1")  # of another feed, in the old form: nothing but its words says so
    producer.events("control", Boundary(reason="without a cut"))
    producer.send("control", encode(Boundary())._replace(value=b"{"))
    assert feeder.fed() == 0
    feeder.feed(feeder.tasks[0])
    assert Feeder(bus, TOPICS, DATA, PLAN).fed() == 1


# ---- what is refused


@pytest.mark.parametrize(
    ("data", "plan", "order"),
    [
        (DATA, Plan("dynamic", 2, 3, 1), None),
        (DATA, Plan("online", 2, 2, 1, 1), None),
        (DATA, PLAN, 3),
        (load("synthetic:classes=8,unseen=2,attributes=8,features=16,rows=6,test=3,seed=8"), PLAN, None),
    ],
    ids=["setting", "sizes", "order", "data"],
)
def test_a_stream_with_the_tasks_of_another_feed_is_refused(
    bus: Bus, data: Dataset, plan: Plan, order: int | None
) -> None:
    first = Feeder(bus, TOPICS, DATA, PLAN)
    first.feed(first.tasks[0])
    with pytest.raises(UsageError) as caught:
        Feeder(bus, TOPICS, data, plan, order)
    error = str(caught.value)
    assert error.startswith(
        f"{bus.url}: the stream 'fed' has the tasks of another feed: found '{FEED} task 1'; expected"
    )
    assert error.endswith(" task 1'; choose another --prefix")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bus]:
    """A stream whose learner has started, for unsigned vectors of the sizes of `DATA`."""
    with connect(sqlite_url(tmp_path_factory.mktemp("started"))) as bus:
        Feeder(bus, TOPICS, DATA, PLAN)
        with learner(settings_for(bus, TOPICS)) as worker:
            wait_for_window(bus, 0, TOPICS, worker.alive)
        yield bus


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("features=17,attributes=8", "was started with features of 16 numbers, and those of synthetic:"),
        ("features=16,attributes=9", "was started with attributes of 8 numbers, and those of synthetic:"),
    ],
)
def test_vectors_of_another_size_than_the_streams_are_refused(started: Bus, text: str, error: str) -> None:
    other = load(f"synthetic:classes=8,{text}")
    with pytest.raises(UsageError) as caught:
        Feeder(started, TOPICS, other, plan_for(other, "online"))
    assert str(caught.value).startswith(f"{started.url}: the stream 'fed' {error}")
    assert str(caught.value).endswith("; choose another --prefix")


def test_negative_features_are_refused_where_the_stream_is_unsigned(started: Bus) -> None:
    with pytest.raises(UsageError, match=r"was started without --signed, and synthetic:.* has negative features"):
        Feeder(started, TOPICS, replace(DATA, features=-DATA.features), PLAN)


def test_topics_that_would_lose_records_are_refused(tmp_path: Path) -> None:
    with connect(sqlite_url(tmp_path)) as bus:
        bus.create([replace(spec, cleanup="compact") for spec in TOPICS.specs() if spec.name == TOPICS["attributes"]])
        with pytest.raises(TopicMisconfigured, match="must be kept as 'keep'"):
            Feeder(bus, TOPICS, DATA, PLAN)


# ---- on both buses


def test_an_interrupted_feed_resumes_on_both_buses(bus_url: str) -> None:
    topics = Topics(f"feed-{uuid4().hex}")
    with new_bus(bus_url, 2, topics) as bus:
        with pytest.raises(Interrupted):
            interrupted = Feeder(bus, topics, DATA, PLAN, sent=stopping_after(20))
            interrupted.feed(interrupted.tasks[0])
        feeder = Feeder(bus, topics, DATA, PLAN)
        boundaries = [feeder.feed(task) for task in feeder.tasks]
        assert Feeder(bus, topics, DATA, PLAN).fed() == 2
        assert events(bus, "control", topics) == boundaries
        assert [len(events(bus, role, topics)) for role in ROLES] == [24, 8, 30]
