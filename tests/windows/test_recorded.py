"""A ledger is read where it is asked for: what it says, what older versions left out, and what reading costs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from helpers import GENESIS, TOPICS, new_bus, recorded, sqlite_url
from ledgers import genesis_record, window_record, write
from patience import until

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.schemas import LedgerRecord, encode
from stream_cgzsl.serving.follower import Follower
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.commit import Commit
from stream_cgzsl.windows.recorded import Ledger, linked


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


def send(bus: Bus, *records: LedgerRecord) -> None:
    with bus.writer() as writer:
        for record in records:
            writer.send(TOPICS["windows"], encode(record))


def old_records(count: int) -> list[LedgerRecord]:
    """As an older version wrote them: the third window has another configuration, the second ends an event time."""
    records = [genesis_record(configuration={"n": 0}), *(window_record(n) for n in range(1, count))]
    records[2] = records[2].model_copy(update={"until_ms": 20})
    records[3] = records[3].model_copy(update={"configuration": {"n": 3}})
    return records


def test_a_new_stream_has_no_ledger(bus: Bus) -> None:
    assert Ledger.open(bus, TOPICS) is None


def test_records_are_found_by_number_and_read_in_either_direction(bus: Bus) -> None:
    records = old_records(30)
    send(bus, *records)
    found = recorded(bus)
    assert (found.genesis, found.last.number) == (GENESIS, 29)
    assert [r.number for r in found.records()] == list(range(30))
    assert [r.number for r in found.records(7, 9)] == [7, 8, 9]
    assert list(found.records(9, 8)) == []
    assert [r.number for r in found.back(12)] == list(range(12, -1, -1))
    assert [found.record(n).number for n in (0, 13, 28, 29)] == [0, 13, 28, 29]


@pytest.mark.parametrize("newer", range(1, 7), ids=lambda n: f"newer version from {n}")
def test_what_older_versions_left_out_is_found_in_the_records_before(bus: Bus, newer: int) -> None:
    records = old_records(7)
    expected = [(0, None), (0, None), (0, None), (3, 20), (3, 20), (3, 20), (3, 20)]
    for number in range(newer, 6):  # the last one is an older version's again
        records[number] = records[number].model_copy(
            update=dict(zip(("configured", "late_ms"), expected[number], strict=True))
        )
    send(bus, *records)
    found = recorded(bus)
    assert [(r.configured, r.late_ms) for r in found.records()] == expected
    assert [(r.configured, r.late_ms) for r in (found.record(n) for n in range(7))] == expected
    assert [found.configuration(r)["n"] for r in found.records()] == [0, 0, 0, 3, 3, 3, 3]


def test_the_next_record_is_linked_to_the_newest_one(bus: Bus) -> None:
    send(bus, *old_records(4))
    found = recorded(bus)
    found.append(linked(window_record(4, until_ms=40), found.last))
    assert (found.last.configured, found.last.late_ms, found.late_ms) == (3, 20, 40)
    found.append(linked(window_record(5, configuration={"n": 5}), found.last))
    assert (found.last.configured, found.last.late_ms, found.late_ms) == (5, 40, 40)


@pytest.mark.parametrize("numbers", [(0, 2), (0, 0), (0, 1, 1)])
def test_a_ledger_whose_last_numbers_are_not_consecutive_is_broken(bus: Bus, numbers: tuple[int, ...]) -> None:
    send(bus, *(genesis_record(number=number) for number in numbers))
    with pytest.raises(BrokenLedger, match=r"t\.windows has record \d where record \d should be"):
        recorded(bus)


def test_a_record_that_is_missing_is_noticed_where_it_would_be_read(bus: Bus) -> None:
    send(bus, genesis_record(), *(window_record(n, configured=0) for n in (1, 2, 4, 5, 6)))
    found = recorded(bus)
    with pytest.raises(BrokenLedger, match=r"t\.windows has record 4 where record 3 should be"):
        list(found.records())
    with pytest.raises(BrokenLedger, match=r"t\.windows has record 2 where record 3 should be"):
        list(found.back(6))
    with pytest.raises(BrokenLedger, match=r"t\.windows has no record 3"):
        found.record(3)


def test_a_ledger_that_does_not_begin_with_a_genesis_is_broken(bus: Bus) -> None:
    send(bus, window_record(1))
    with pytest.raises(BrokenLedger, match=r"t\.windows does not begin with a genesis record"):
        recorded(bus)
    with pytest.raises(BrokenLedger, match=r"t\.windows does not begin with a genesis record"):
        ledger.read_genesis(bus, TOPICS)


def test_opening_costs_the_same_however_long_the_ledger_is(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    send(bus, genesis_record(configuration={}), *(window_record(n, configured=0) for n in range(1, 500)))
    original, parsed = ledger.parse, 0

    def counting(record: Any) -> LedgerRecord:
        nonlocal parsed
        parsed += 1
        return original(record)

    monkeypatch.setattr("stream_cgzsl.windows.recorded.parse", counting)
    found = recorded(bus)
    found.configuration(found.last)
    assert (found.last.number, parsed) == (499, 3)


def test_the_genesis_is_found_after_many_aborted_attempts(kafka_url: str) -> None:
    topics = Topics(f"recorded-{uuid.uuid4().hex[:8]}")
    with new_bus(kafka_url, 2, topics) as bus:
        with bus.publisher(f"{topics.prefix}.learner") as publisher:
            for _ in range(20):
                publisher.begin()
                publisher.send(topics["windows"], encode(genesis_record()))
                publisher.flush()
                publisher.abort()
        until(lambda: bus.end_offsets(topics["windows"])[0] == 40, "the marker of the last abort")
        for record in (genesis_record(configuration={}), *(window_record(n) for n in (1, 2, 3))):
            write(bus, Commit(record), topics)
        assert ledger.read_genesis(bus, topics) == GENESIS
        with closing(Follower(bus, topics)) as follower:
            assert follower.genesis == GENESIS
        found = recorded(bus, topics)
        assert [found.record(n).number for n in (0, 1, 2, 3)] == [0, 1, 2, 3]
        assert [r.number for r in found.back(2)] == [2, 1, 0]
