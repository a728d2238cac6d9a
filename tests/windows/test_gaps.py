"""Records that expired before they were read: refused with their offsets, or skipped and noted in the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from expiry import expire
from helpers import CLASSES, TOPICS, Producer, examples, new_bus, sqlite_url
from ledgers import window_record

from stream_cgzsl.bus import Bus
from stream_cgzsl.errors import Expired
from stream_cgzsl.schemas import Range
from stream_cgzsl.windows.gaps import Gap, expired_ranges

STARTS = {"attributes": {0: 0, 1: 0}, "features": {0: 2, 1: 0}, "holdout": {0: 0, 1: 0}}


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    """Ten features in each of two partitions."""
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        for partition in (0, 1):
            Producer(bus).events("features", *examples([CLASSES[0]], 10), partition=partition)
        yield bus


def test_without_a_gap_nothing_is_refused_and_nothing_moves(bus: Bus) -> None:
    expire(bus, TOPICS["features"], 0, 2)  # these were read before
    gap = Gap.find(bus, TOPICS, STARTS)
    gap.refuse(TOPICS, STARTS)
    assert (gap.lost, gap.after(STARTS)) == ({}, STARTS)


def test_a_gap_is_refused_with_its_offsets_and_what_to_do(bus: Bus) -> None:
    expire(bus, TOPICS["features"], 0, 5)
    expire(bus, TOPICS["features"], 1, 1)
    gap = Gap.find(bus, TOPICS, STARTS)
    with pytest.raises(Expired, match=r"t\.features/0 \[2, 5\), t\.features/1 \[0, 1\)\. .*learn --accept-loss"):
        gap.refuse(TOPICS, STARTS)


def test_an_accepted_gap_is_skipped_and_noted(bus: Bus) -> None:
    expire(bus, TOPICS["features"], 0, 5)
    gap = Gap.find(bus, TOPICS, STARTS)
    assert gap.after(STARTS) == {**STARTS, "features": {0: 5, 1: 0}}
    ranges = {"features": {0: Range(start=5, end=9, accepted=4), 1: Range(start=0, end=0)}}
    assert gap.note(ranges) == {"features": {0: Range(start=5, end=9, accepted=4, lost=3), 1: Range(start=0, end=0)}}


def test_an_accepted_gap_of_a_partition_that_was_added_since_is_skipped_too(bus: Bus) -> None:
    expire(bus, TOPICS["features"], 1, 4)
    starts = {**STARTS, "features": {0: 2}}
    assert Gap.find(bus, TOPICS, starts).after(starts) == {**STARTS, "features": {0: 2, 1: 4}}


@pytest.mark.parametrize(("before", "expired"), [(10, []), (13, ["features/0 [10,13) expired"])])
def test_inputs_that_expired_after_they_were_learned_are_listed(
    tmp_path: Path, before: int, expired: list[str]
) -> None:
    with new_bus(sqlite_url(tmp_path, "learned"), 2) as bus:
        Producer(bus).events("features", *examples([CLASSES[0]], 20), partition=0)
        expire(bus, TOPICS["features"], 0, before)
        assert expired_ranges(bus, TOPICS, window_record(2)) == expired
