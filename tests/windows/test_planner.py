"""All policies together: which one closes the next window, and what goes into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers import CLASSES, TOPICS, Producer, examples, new_bus, sqlite_url
from ledgers import genesis_record, window_record

from stream_cgzsl.bus import Bus
from stream_cgzsl.schemas import LedgerRecord, Message, Range
from stream_cgzsl.windows.cuts import Cut
from stream_cgzsl.windows.offsets import ends_of
from stream_cgzsl.windows.planner import Planner, Policies, empty_cut

A, B, C = CLASSES[:3]
GENESIS = genesis_record()
ONLY_MARKERS = Policies(quiet=1e9)


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    """Two descriptions and six features wait, in two partitions."""
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        producer = Producer(bus)
        for partition, class_id in enumerate((A, B)):
            producer.events("features", *examples([class_id], 3), partition=partition)
        producer.describe(A, B)
        yield bus


@pytest.fixture
def producer(bus: Bus) -> Producer:
    return Producer(bus)


@contextmanager
def planning(bus: Bus, policies: Policies, clock: Callable[[], float] = lambda: 0.0) -> Iterator[Planner]:
    """A planner of a stream that has only its genesis."""
    with closing(Planner(bus, TOPICS, policies, GENESIS, None, clock)) as planner:
        yield planner


def after(last: LedgerRecord, cut: Cut) -> LedgerRecord:
    """The ledger record of a window with that cut."""
    ranges: dict[str, Any] = {
        role: {p: Range(start=0, end=e) for p, e in cut.ends[role].items()} for role in ("attributes", "features")
    }
    return last.model_copy(
        update={
            "number": last.number + 1,
            "ranges": {**ranges, "control": {0: cut.control}},
            "holdout": cut.ends["holdout"],
        }
    )


def test_invalid_control_records_go_into_the_next_window_whichever_policy_closes_it(
    bus: Bus, producer: Producer
) -> None:
    producer.send("control", Message(None, b"bad"), Message(None, b"worse"))
    with planning(bus, Policies(quiet=1e9, count=6)) as planner:
        cut = planner.look(GENESIS)
        assert cut is not None and cut.policy == "count"
        assert (len(cut.dead), cut.control) == (2, Range(start=0, end=2, dead={"not-json": 2}))
        last = after(GENESIS, cut)
        producer.boundary("then")
        cut = planner.look(last)
    assert cut is not None and (cut.dead, cut.control) == ((), Range(start=2, end=3, accepted=1))


def test_invalid_control_records_are_not_lost_with_the_process_that_read_them(bus: Bus, producer: Producer) -> None:
    producer.send("control", Message(None, b"bad"))
    for _ in range(2):  # for the second process the ledger is as it was for the first
        with planning(bus, ONLY_MARKERS) as planner:
            assert planner.look(GENESIS) is None
    producer.boundary()
    with planning(bus, ONLY_MARKERS) as planner:
        cut = planner.look(GENESIS)
    assert cut is not None
    assert (len(cut.dead), cut.control) == (1, Range(start=0, end=2, accepted=1, dead={"not-json": 1}))


def test_a_marker_comes_before_every_other_policy(bus: Bus, producer: Producer) -> None:
    producer.boundary("mine")
    last, closed = GENESIS, []
    with planning(bus, Policies(quiet=1e-9, count=1)) as planner:
        while cut := planner.look(last):
            closed.append((cut.policy, cut.reason))
            last = after(last, cut)
    assert closed == [("marker", "mine")]


def test_the_first_policy_that_closes_wins_and_the_others_continue(bus: Bus, producer: Producer) -> None:
    time = iter(range(100, 1000, 10))
    last, closed = GENESIS, []
    with planning(bus, Policies(quiet=5, count=4), lambda: float(next(time))) as planner:
        while cut := planner.look(last) or planner.look(last):
            closed.append((cut.policy, sum(cut.ends["features"].values())))
            last = after(last, cut)
            if len(closed) == 1:
                producer.describe(C)
    assert closed == [("count", 4), ("describe", 4)]


def test_the_backlog_is_what_waits_after_the_last_window(bus: Bus) -> None:
    with planning(bus, Policies(count=5)) as planner:
        cut = planner.look(GENESIS)
        assert cut is not None
        last = after(GENESIS, cut)
        planner.look(last)
        assert planner.waiting(last) == {"attributes": 0, "features": 1, "control": 0}


def test_a_marker_counts_as_backlog_until_its_window_is_committed_and_an_invalid_one_never(
    bus: Bus, producer: Producer
) -> None:
    with planning(bus, ONLY_MARKERS) as planner:
        producer.send("control", Message(None, b"?"))
        assert planner.look(GENESIS) is None
        assert planner.waiting(GENESIS)["control"] == 0
        producer.boundary()
        cut = planner.look(GENESIS)
        assert cut is not None
        assert planner.waiting(GENESIS)["control"] == 2  # both are in the window that is open
        last = after(GENESIS, cut)
        assert planner.look(last) is None
        assert planner.waiting(last)["control"] == 0


def test_an_empty_cut_takes_no_records() -> None:
    last = window_record(3, holdout={0: 1, 1: 2})
    cut = empty_cut(last, "rollback", "accept-loss", to=2)
    nothing = Range(start=3, end=3)
    assert cut == Cut("rollback", "accept-loss", "accept-loss", ends_of(last), control=nothing, to=2)
