"""A flood of bad records: windows end early, memory and transactions stay small, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    TOPICS,
    InThread,
    Producer,
    examples,
    learner,
    letters,
    new_bus,
    recorded,
    settings_for,
    sqlite_url,
)
from helpers import wait_for_window as wait
from patience import until

from stream_cgzsl.bus import Bus
from stream_cgzsl.errors import TooManyDeadLetters
from stream_cgzsl.history.check import check
from stream_cgzsl.history.replay import Verdict, verify
from stream_cgzsl.schemas import Attribute, Feature, LedgerRecord, encode
from stream_cgzsl.windows import gather, ledger

A, B = CLASSES[:2]
BAD = 20_000
GOOD = 50
LETTERS_A_WINDOW = 6000  # what the bound below is worth, and one poll more


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bus]:
    monkeypatch.setattr(gather, "DEAD_BYTES", raising=False, value=10_000_000)
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


def flood(bus: Bus, bad: int = BAD) -> None:
    """Features of another encoder, with good ones among them."""
    wrong = encode(Feature(class_id=A, vector=np.ones(5, np.float32)))
    good = iter(examples([A, B], GOOD // 2))
    with bus.writer() as writer:
        for number in range(bad):
            writer.send(TOPICS["features"], wrong, number % 2)
            if number % (bad // GOOD) == 0:
                writer.send(TOPICS["features"], encode(next(good)), number % 2)


def wait_for_the_rest(bus: Bus, worker: InThread) -> None:
    def done() -> bool:
        worker.alive()
        record, _ = ledger.read_last(bus, TOPICS)
        return record is not None and record.policy == "marker"

    until(done, "the window that the boundary closes")


def dead_features(record: LedgerRecord) -> int:
    return sum(sum(span.dead.values()) for span in record.ranges["features"].values())


@pytest.mark.slow
def test_a_flood_of_bad_records_is_learned_in_short_windows(bus: Bus) -> None:
    producer = Producer(bus)
    producer.describe(A, B)
    flood(bus)
    boundary = producer.boundary("after the flood")
    settings = settings_for(bus, **NO_DESCRIBE)
    with learner(settings) as worker:
        wait(bus, 2, alive=worker.alive)
    with learner(settings) as worker:  # it knows of the boundary from the control topic alone
        wait_for_the_rest(bus, worker)
    windows = ledger.read_all(bus, TOPICS)[1:]
    assert len(windows) >= 4
    assert {record.policy for record in windows[:-1]} == {"dead-letters"}
    assert {record.reason for record in windows} == {"after the flood"}
    assert max(map(dead_features, windows)) <= LETTERS_A_WINDOW
    assert {p: span.end for p, span in windows[-1].ranges["features"].items()} == (boundary.cut or {})["features"]
    assert [record.ranges["control"][0].end for record in windows] == [0] * (len(windows) - 1) + [1]
    found = check(bus, TOPICS)
    assert (found.problems, found.dead, found.accepted) == ([], BAD, 2 + GOOD + 1)
    assert len({(letter.partition, letter.offset) for letter in letters(bus)}) == BAD
    assert {replayed.verdict for replayed in verify(bus, TOPICS, recorded(bus), "cpu")} == {Verdict.IDENTICAL}


def test_a_flood_of_bad_descriptions_leaves_the_features_for_later(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "DEAD_BYTES", 1)
    monkeypatch.setattr(gather, "_POLL_BYTES", 4 * 16 * 10)  # ten records a poll
    producer = Producer(bus)
    producer.events("attributes", *[Attribute(class_id="?", vector=np.ones(3, np.float32))] * 25, partition=0)
    producer.describe(A)
    producer.teach(A, rows=4)
    producer.boundary()
    with learner(settings_for(bus, **NO_DESCRIBE)) as worker:
        wait_for_the_rest(bus, worker)
    windows = ledger.read_all(bus, TOPICS)[1:]
    learned = [sum(span.accepted for span in record.ranges["features"].values()) for record in windows]
    assert len(windows) > 1 and (sum(learned[:-1]), learned[-1]) == (0, 4)
    assert check(bus, TOPICS).problems == []


def test_the_limit_of_dead_letters_counts_all_parts_of_a_window(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "DEAD_BYTES", 1)
    producer = Producer(bus)
    producer.describe(A)
    flood(bus, 3000)
    producer.boundary()
    worker = learner(settings_for(bus, dead_letter_limit=2000, **NO_DESCRIBE))
    with pytest.raises(TooManyDeadLetters), worker:
        worker.wait()
