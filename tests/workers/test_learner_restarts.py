"""A learner that ends and starts again: nothing shows it but the time it took."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import CLASSES, NO_DESCRIBE, TOPICS, Producer, examples, learner, new_bus, read, settings_for, sqlite_url
from helpers import wait_for_window as wait

from stream_cgzsl.bus import Bus
from stream_cgzsl.errors import BrokenLedger, BusUnavailable, Cancelled, Expired
from stream_cgzsl.learners.closed_form import ClosedForm
from stream_cgzsl.learners.interface import SILENT
from stream_cgzsl.schemas import LedgerRecord, Range, Rollback
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.check import check
from stream_cgzsl.workers import standby

A, B, C, D = CLASSES[:4]
Told = list[tuple[str, str | None, str | None]]


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


@pytest.fixture
def producer(bus: Bus) -> Producer:
    return Producer(bus)


def story(bus: Bus, restart: bool, **others: Any) -> Told:
    """Six windows, with a fresh learner for each or one for all; kind, inputs and generation of each."""
    producer = Producer(bus)
    steps = (
        lambda: producer.describe(A, B, C),
        lambda: (producer.teach(A, B, rows=8), producer.boundary()),
        lambda: (producer.teach(A, rows=3), producer.teach(C, rows=8), producer.boundary()),  # three are repeats
        lambda: producer.retire(A),
        lambda: producer.describe(A, D),
        lambda: (producer.teach(D, A, rows=5, purpose=3), producer.boundary()),
    )
    with ExitStack() as stack:
        for number, step in enumerate(steps, 1):
            if restart or number == 1:
                stack.close()
                worker = stack.enter_context(learner(settings_for(bus, **others)))
            step()
            wait(bus, number, alive=worker.alive)
    return [(r.kind, r.inputs, r.generation) for r in ledger.read_all(bus, TOPICS)[1:]]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Told:
    with new_bus(sqlite_url(tmp_path_factory.mktemp("whole")), 2) as bus:
        told = story(bus, restart=False)
    assert [kind for kind, _, _ in told] == ["describe", "train", "train", "describe", "describe", "train"]
    assert len({digest for _, _, digest in told}) == 6
    return told


@pytest.mark.parametrize("every", [1, 3])
def test_restarts_change_nothing(bus: Bus, every: int, uninterrupted: Told) -> None:
    assert story(bus, restart=True, snapshot_every=every) == uninterrupted
    states = [record.number for record in ledger.read_all(bus, TOPICS) if record.state is not None]
    assert states == list(range(every, 7, every))


def test_partitions_change_nothing(tmp_path: Path, uninterrupted: Told) -> None:
    with new_bus(sqlite_url(tmp_path, "one"), 1) as bus:
        assert story(bus, restart=False) == uninterrupted


def test_stopping_in_mid_training_costs_only_that_work(
    bus: Bus, producer: Producer, monkeypatch: pytest.MonkeyPatch, uninterrupted: Told
) -> None:
    training = threading.Event()

    def endless(self: object, window: object, monitor: Any) -> None:  # noqa: ARG001
        training.set()
        while not monitor.cancelled():
            training.wait(0.01)
        raise Cancelled("as told")

    with monkeypatch.context() as patched:
        patched.setattr(ClosedForm, "fit", endless)
        with learner(settings_for(bus)) as worker:
            producer.describe(A, B, C)
            wait(bus, 1, alive=worker.alive)
            producer.teach(A, B, rows=8)
            producer.boundary()
            assert training.wait(20)
    assert len(ledger.read_all(bus, TOPICS)) == 2
    with learner(settings_for(bus)) as worker:
        record = wait(bus, 2, alive=worker.alive)
    assert (record.kind, record.inputs, record.generation) == uninterrupted[1]


def test_a_bus_that_is_away_is_waited_for(bus: Bus, producer: Producer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "_RETRY_SECONDS", 0.01)
    original, failures = ledger.read_all, [BusUnavailable("gone fishing"), BusUnavailable("still")]

    def sometimes(*arguments: Any) -> list[LedgerRecord]:
        if failures:
            raise failures.pop()
        return original(*arguments)

    monkeypatch.setattr(ledger, "read_all", sometimes)
    with learner(settings_for(bus)) as worker:
        producer.describe(A)
        wait(bus, 1, alive=worker.alive)
    assert worker.metrics.registry.get_sample_value("cgzsl_bus_errors_total") == 2


# ---- what is no longer there, or no longer the same


def forget(bus: Bus, role: str, partition: int, first: int) -> None:
    """Lets the records before `first` expire, as a broker's retention would."""
    with closing(sqlite3.connect(bus.url.removeprefix("sqlite:///"))) as db, db:
        place = (TOPICS[role], partition)
        (number,) = db.execute("SELECT id FROM partitions WHERE topic = ? AND number = ?", place).fetchone()
        db.execute("DELETE FROM records WHERE place >> 40 = ? AND place & ? < ?", (number, 2**40 - 1, first))
        db.execute("UPDATE partitions SET first = ? WHERE id = ?", (first, number))


def test_records_that_expired_unread_are_refused_with_the_numbers_or_written_down(bus: Bus, producer: Producer) -> None:
    with learner(settings_for(bus)) as worker:
        producer.describe(A)
        wait(bus, 1, alive=worker.alive)
    producer.events("features", *examples([A], 5), partition=1)
    producer.boundary()
    forget(bus, "features", 1, 3)
    worker = learner(settings_for(bus))
    with pytest.raises(Expired, match=r"t\.features/1 \[0, 3\).*--accept-loss"), worker:
        worker.wait()
    assert len(ledger.read_all(bus, TOPICS)) == 2
    with learner(settings_for(bus), accept_loss=True) as worker:
        record = wait(bus, 2, alive=worker.alive)
    assert record.ranges["features"][1] == Range(start=3, end=5, accepted=2, lost=3)
    assert (check(bus, TOPICS).problems, check(bus, TOPICS).lost) == ([], 3)


def test_a_snapshot_spares_records_that_expired_after_they_were_learned(bus: Bus, producer: Producer) -> None:
    with learner(settings_for(bus, **NO_DESCRIBE)) as worker:
        producer.describe(A, B)
        producer.events("features", *examples([A], 4), partition=0)
        producer.boundary()
        wait(bus, 1, alive=worker.alive)
    forget(bus, "features", 0, 4)
    with learner(settings_for(bus)) as worker:
        producer.events("features", *examples([B], 4), partition=0)
        producer.boundary()
        record = wait(bus, 2, alive=worker.alive)
    assert (record.kind, record.seen) == ("train", 2)


def test_a_result_that_cannot_be_repeated_is_refused_and_can_be_accepted(
    bus: Bus, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(bus, snapshot_every=10, **NO_DESCRIBE)
    with learner(settings) as worker:
        producer.describe(A, B)
        producer.teach(A, rows=4)
        producer.boundary()
        wait(bus, 1, alive=worker.alive)
    original = ClosedForm.fit

    def other(self: ClosedForm, window: Any, monitor: Any = SILENT) -> Any:
        """As if computed by another machine: the last bits differ."""
        generation = original(self, window, monitor)
        return replace(generation, biases=np.nextafter(generation.biases, np.float32(9)))

    monkeypatch.setattr(ClosedForm, "fit", other)
    refused = learner(settings)
    with pytest.raises(BrokenLedger, match=r"window 1, trained again, gave generation .* learn --rebuild"), refused:
        refused.wait()
    with learner(settings, rebuild=True) as worker:
        record = wait(bus, 2, alive=worker.alive)
    assert (record.kind, record.reason) == ("describe", "rebuild")
    assert record.state is not None
    with learner(settings) as worker:  # from the new snapshot, without another question
        producer.describe(C)
        producer.boundary()
        wait(bus, 3, alive=worker.alive)


# ---- rollback


def taught(bus: Bus, producer: Producer, **others: Any) -> list[LedgerRecord]:
    """Two trained windows, then a rollback to the first."""
    with learner(settings_for(bus, **NO_DESCRIBE, **others)) as worker:
        producer.describe(A, B)
        producer.teach(A, rows=6)
        producer.boundary()
        wait(bus, 1, alive=worker.alive)
        producer.describe(C)
        producer.teach(B, C, rows=6)
        producer.boundary()
        wait(bus, 2, alive=worker.alive)
        producer.events("control", Rollback(to=1, reason="worse"))
        wait(bus, 3, alive=worker.alive)
    return ledger.read_all(bus, TOPICS)


@pytest.mark.parametrize("every", [1, 10])
def test_a_rollback_brings_back_what_a_generation_was(bus: Bus, producer: Producer, every: int) -> None:
    records = taught(bus, producer, snapshot_every=every)
    one, two, three = (ledger.load_generation(bus, TOPICS, r) for r in records[1:])
    assert (records[3].kind, records[3].reason, records[3].to) == ("rollback", "worse", 1)
    assert (two.class_ids, three.class_ids, three.number) == ((A, B, C), (A, B), 3)
    for name in ("seen", "vectors", "biases", "centre"):
        np.testing.assert_array_equal(getattr(three, name), getattr(one, name))
    withdrawn = [r.key for r in read(bus, TOPICS["projections"]) if not r.value]
    assert withdrawn == [C.encode()]
    assert records[3].ranges["features"] == {
        p: Range(start=span.end, end=span.end) for p, span in records[2].ranges["features"].items()
    }


@pytest.mark.parametrize("every", [1, 10])
def test_the_stream_goes_on_from_a_rollback_also_after_a_restart(bus: Bus, producer: Producer, every: int) -> None:
    taught(bus, producer, snapshot_every=every)
    with learner(settings_for(bus, snapshot_every=every)) as worker:
        producer.teach(B, rows=6)  # of the window that was rolled back: not repeats any more
        producer.boundary()
        record = wait(bus, 4, alive=worker.alive)
    assert (record.kind, record.seen, record.unseen) == ("train", 2, 0)
    assert sum(s.accepted for s in record.ranges["features"].values()) == 6
    assert check(bus, TOPICS).problems == []


def test_a_rollback_goes_back_under_todays_configuration(bus: Bus, producer: Producer) -> None:
    with learner(settings_for(bus)) as worker:
        producer.describe(A)
        wait(bus, 1, alive=worker.alive)
    with learner(settings_for(bus, memory_gb=1)) as worker:
        producer.describe(B)
        wait(bus, 2, alive=worker.alive)
        producer.events("control", Rollback(to=1))
        wait(bus, 3, alive=worker.alive)
    with learner(settings_for(bus, memory_gb=1)) as worker:
        producer.describe(C)
        record = wait(bus, 4, alive=worker.alive)
    assert (record.unseen, record.configuration) == (2, None)


def test_a_rollback_that_is_no_longer_possible_costs_one_record_not_the_worker(bus: Bus, producer: Producer) -> None:
    """Window 1 has no snapshot of its own, and its records have expired."""
    with learner(settings_for(bus, snapshot_every=2, **NO_DESCRIBE)) as worker:
        producer.describe(A, B)
        producer.events("features", *examples([A], 4), partition=0)
        producer.boundary()
        wait(bus, 1, alive=worker.alive)
        producer.events("features", *examples([B], 4), partition=0)
        producer.boundary()
        before = wait(bus, 2, alive=worker.alive)
        forget(bus, "features", 0, 4)
        producer.events("control", Rollback(to=1))
        failed = wait(bus, 3, alive=worker.alive)
        assert (failed.kind, failed.to) == ("failed", None)
        assert "4" in (failed.error or "")
        producer.describe(C)
        producer.boundary()
        wait(bus, 4, alive=worker.alive)
    old, new = (ledger.load_generation(bus, TOPICS, record) for record in (before, failed))
    np.testing.assert_array_equal(old.vectors, new.vectors)
