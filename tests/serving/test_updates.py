"""Generations that are published as updates: whole or not at all, at a cost that does not grow with the history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import TOPICS, new_bus, read, sqlite_url
from ledgers import genesis_record, replace_record, window_record, write
from test_blocks import delta, generation

from stream_cgzsl.bus import Bus
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.schemas import LedgerRecord, Message, Projection, decode
from stream_cgzsl.serving import generation_io
from stream_cgzsl.serving.follower import Follower
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import GenerationLoader, commit_of, load_generation
from stream_cgzsl.windows.commit import Commit
from stream_cgzsl.windows.ledger import Incomplete


class Updates:
    """A stream of updates: publishes what its learner would."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.generations: dict[int, Generation] = {}
        self.records = [write(bus, Commit(genesis_record()))]

    def add(self, made: Generation, **changes: Any) -> LedgerRecord:
        seen = int(made.seen.sum())
        record = window_record(made.number, seen=seen, unseen=len(made.class_ids) - seen, **changes)
        self.generations[made.number] = made
        before = set(self.generations[made.number - 1].class_ids) if made.number > 1 else set()
        commit = commit_of(record, made, withdrawn=before - set(made.class_ids), before=self.records[-1])
        self.records.append(write(self.bus, commit))
        return self.records[-1]

    def whole(self, rows: dict[str, int]) -> LedgerRecord:
        return self.add(generation(len(self.records), rows))

    def update(self, rows: dict[str, int], *withdrawn: str) -> LedgerRecord:
        number = len(self.records)
        return self.add(self.generations[number - 1].after(delta(number, rows, withdrawn)))

    def rows(self) -> int:
        return len(read(self.bus, TOPICS["projections"]))


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


@pytest.fixture
def stream(bus: Bus) -> Updates:
    """Whole, three updates, whole again, one more update."""
    updates = Updates(bus)
    updates.whole({"a": 1, "b": 2, "c": 3})
    updates.update({"b": 5})
    updates.update({"d": 4, "a": 7}, "c")
    updates.update({})
    updates.whole({"a": 2, "x": 9})
    updates.update({"c": 6}, "a")
    return updates


def test_an_update_publishes_only_what_changed(bus: Bus) -> None:
    updates = Updates(bus)
    updates.whole({"a": 1, "b": 2, "c": 3})
    before = updates.rows()
    record = updates.update({"b": 5}, "c")
    new = read(bus, TOPICS["projections"])[before:]
    assert [(r.key, bool(r.value)) for r in new] == [(b"c", False), (b"b", True)]
    assert record.update is not None
    assert (record.update.base, record.update.whole, record.update.rows) == (1, 1, 2)


def test_every_generation_is_loaded_back_by_itself(stream: Updates) -> None:
    for record in stream.records[1:]:
        loaded = load_generation(stream.bus, TOPICS, record)
        assert loaded.digest == stream.generations[record.number].digest == record.generation


@pytest.mark.parametrize("numbers", [(1, 2, 3, 4, 5, 6), (1, 3), (2, 4, 6), (1, 6), (6, 3)])
def test_generations_are_loaded_in_any_order(stream: Updates, numbers: tuple[int, ...]) -> None:
    loader = GenerationLoader(stream.bus, TOPICS)
    for number in numbers:
        assert loader.load(stream.records[number]).digest == stream.generations[number].digest


def test_continuing_reads_only_what_is_new(stream: Updates, monkeypatch: pytest.MonkeyPatch) -> None:
    loader, asked = GenerationLoader(stream.bus, TOPICS), []
    original = generation_io.read_events

    def noted(*arguments: Any) -> Any:
        asked.append(arguments[-1].end - arguments[-1].first)
        return original(*arguments)

    loader.load(stream.records[1])
    monkeypatch.setattr(generation_io, "read_events", noted)
    loader.load(stream.records[2])
    assert asked == [1]


def test_what_was_published_since_the_last_whole_generation_is_bounded(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is the cost of starting to follow, however long the history is."""
    monkeypatch.setattr(generation_io, "FEWEST_ROWS", 1)
    updates = Updates(bus)
    updates.whole({"a": 1, "b": 2})
    spans = []
    for number in range(20):
        record = updates.update({"a": number})
        assert record.projections is not None
        first = record.projections.first if record.update is None else record.update.first
        spans.append(record.projections.end - first)
    assert max(spans) == 2 + 2 * 2
    assert [record.number for record in updates.records[1:] if record.update is None] == [1, 6, 11, 16, 21]
    assert load_generation(bus, TOPICS, updates.records[-1]).digest == updates.generations[21].digest


def test_after_a_window_without_projections_everything_is_published(bus: Bus) -> None:
    updates = Updates(bus)
    made = generation(1, {"a": 1})
    record = window_record(1, seen=0, unseen=1)
    updates.generations[1] = made
    updates.records.append(write(bus, Commit(record)))  # of a version that published nothing here
    assert updates.add(made.after(delta(2, {"b": 2}))).update is None


@pytest.mark.parametrize("gone", [0, 5], ids=["of the whole generation", "of an update"])
def test_with_a_record_gone_the_generation_is_incomplete(bus: Bus, gone: int) -> None:
    updates = Updates(bus)
    updates.whole({"a": 1, "b": 2, "c": 3})
    updates.update({"b": 5})
    record = updates.update({"d": 1}, "c")
    replace_record(bus, "projections", gone, None)
    with pytest.raises(Incomplete, match=r"2 of 3 projections of generation 3 are left"):
        load_generation(bus, TOPICS, record)


def test_what_compaction_removes_is_not_needed(bus: Bus) -> None:
    updates = Updates(bus)
    updates.whole({"a": 1, "b": 2, "c": 3})
    updates.update({"b": 5})
    record = updates.update({"d": 1}, "c")
    for replaced in (1, 2):  # b and c have later records
        replace_record(bus, "projections", replaced, None)
    assert load_generation(bus, TOPICS, record).digest == updates.generations[3].digest


@pytest.mark.parametrize("offset", [0, 3], ids=["of the whole generation", "of the update"])
def test_a_changed_record_is_noticed(bus: Bus, offset: int) -> None:
    updates = Updates(bus)
    updates.whole({"a": 1, "b": 2, "c": 3})
    record = updates.update({"b": 5})
    item = read(bus, TOPICS["projections"])[offset]
    event = decode("projections", item.key, item.value, item.headers)
    assert isinstance(event, Projection)
    value = (-event.vector).astype("<f4").tobytes()
    replace_record(bus, "projections", offset, Message(item.key, value, item.headers))
    for loader in (GenerationLoader(bus, TOPICS), GenerationLoader(bus, TOPICS)):
        with pytest.raises(BrokenLedger, match="somebody else changed the projections"):
            loader.load(record)


def test_a_follower_takes_updates_one_by_one_and_several_at_once(bus: Bus) -> None:
    updates = Updates(bus)
    updates.whole({"a": 1, "b": 2})
    follower = Follower(bus, TOPICS)
    seen = []
    for count in (1, 3):
        for _ in range(count):
            updates.update({"b": 7 + len(updates.records)})
        assert follower.refresh(5.0)
        assert follower.generation is not None
        seen.append((follower.generation.number, follower.generation.digest == updates.records[-1].generation))
    assert seen == [(2, True), (5, True)]
    follower.close()


def test_a_generation_that_is_not_all_there_is_tried_again(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """The marker of a transaction may reach the ledger before it reaches the projections."""
    monkeypatch.setattr("stream_cgzsl.serving.follower._RETRY_SECONDS", 0.0)
    updates = Updates(bus)
    updates.whole({"a": 1, "b": 2})
    follower = Follower(bus, TOPICS)
    first = len(read(bus, TOPICS["projections"]))
    updates.whole({"a": 3, "b": 4})
    late = read(bus, TOPICS["projections"])[first]
    replace_record(bus, "projections", first, Message(b"z", b"?"))
    assert not follower.refresh(5.0)
    assert (follower.newest, follower.generation and follower.generation.number) == (2, 1)
    assert not follower.refresh(0.0)
    replace_record(bus, "projections", first, Message(late.key, late.value, late.headers))
    assert follower.refresh(0.0)
    assert follower.generation is not None
    assert (follower.newest, follower.generation.number) == (2, 2)
    follower.close()
