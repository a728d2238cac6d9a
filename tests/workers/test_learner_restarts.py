"""A learner that stops and starts again: the results are the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from expiry import expire
from helpers import CLASSES, NO_DESCRIBE, TOPICS, Producer, examples, learner, new_bus, read, settings_for, sqlite_url
from helpers import wait_for_window as wait
from patience import PATIENCE_SECONDS

from stream_cgzsl.bus import Bus, Record
from stream_cgzsl.errors import BrokenLedger, BusUnavailable, Cancelled, Expired
from stream_cgzsl.history.check import check
from stream_cgzsl.learners.interface import SILENT
from stream_cgzsl.learners.kernel.closed_form import ClosedForm
from stream_cgzsl.schemas import LedgerRecord, Range, Rollback
from stream_cgzsl.serving.generation_io import load_generation
from stream_cgzsl.windows import ledger, recorded
from stream_cgzsl.workers import leader

A, B, C, D = CLASSES[:4]
Results = list[tuple[str, str | None, str | None]]
"""Kind, inputs and generation of each window."""


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


@pytest.fixture
def producer(bus: Bus) -> Producer:
    return Producer(bus)


def learn_six(bus: Bus, restart: bool, **others: Any) -> Results:
    """Six windows, with a new learner for each or one for all."""
    producer = Producer(bus)
    steps = (
        lambda: producer.describe(A, B, C),
        lambda: (producer.teach(A, B, rows=8), producer.boundary()),
        lambda: (producer.teach(A, rows=3), producer.teach(C, rows=8), producer.boundary()),  # three are duplicates
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
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Results:
    with new_bus(sqlite_url(tmp_path_factory.mktemp("whole")), 2) as bus:
        results = learn_six(bus, restart=False)
    assert [kind for kind, _, _ in results] == ["describe", "train", "train", "describe", "describe", "train"]
    assert len({digest for _, _, digest in results}) == 6
    return results


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.slow
def test_restarts_change_nothing(bus: Bus, every: int, uninterrupted: Results) -> None:
    assert learn_six(bus, restart=True, snapshot_every=every) == uninterrupted
    states = [record.number for record in ledger.read_all(bus, TOPICS) if record.state is not None]
    assert states == list(range(every, 7, every))


def test_partitions_change_nothing(tmp_path: Path, uninterrupted: Results) -> None:
    with new_bus(sqlite_url(tmp_path, "one"), 1) as bus:
        assert learn_six(bus, restart=False) == uninterrupted


def test_stopping_during_training_costs_only_that_work(
    bus: Bus, producer: Producer, monkeypatch: pytest.MonkeyPatch, uninterrupted: Results
) -> None:
    training = threading.Event()

    def endless(self: object, window: object, monitor: Any) -> None:  # noqa: ARG001
        training.set()
        while not monitor.cancelled():
            training.wait(0.01)
        raise Cancelled("by the test")

    with monkeypatch.context() as patched:
        patched.setattr(ClosedForm, "fit", endless)
        with learner(settings_for(bus)) as worker:
            producer.describe(A, B, C)
            wait(bus, 1, alive=worker.alive)
            producer.teach(A, B, rows=8)
            producer.boundary()
            assert training.wait(PATIENCE_SECONDS)
    assert len(ledger.read_all(bus, TOPICS)) == 2
    with learner(settings_for(bus)) as worker:
        record = wait(bus, 2, alive=worker.alive)
    assert (record.kind, record.inputs, record.generation) == uninterrupted[1]


def test_stopping_while_a_window_is_restored_does_not_wait_for_its_training(
    bus: Bus, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with learner(settings_for(bus, snapshot_every=10, **NO_DESCRIBE)) as worker:
        producer.describe(A, B)
        producer.teach(A, B, rows=8)
        producer.boundary()
        wait(bus, 1, alive=worker.alive)
    training, given_up = threading.Event(), threading.Event()

    def endless(self: object, window: object, monitor: Any) -> None:  # noqa: ARG001
        training.set()
        while not given_up.is_set() and not monitor.cancelled():
            training.wait(0.01)
        raise Cancelled("by the test")

    monkeypatch.setattr(ClosedForm, "fit", endless)
    with learner(settings_for(bus)) as worker:
        assert training.wait(PATIENCE_SECONDS)
        worker.stop.set()
        worker._thread.join(10)
        stopped = not worker._thread.is_alive()
        given_up.set()
    assert stopped


def test_an_unavailable_bus_is_waited_for(bus: Bus, producer: Producer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "_RETRY_SECONDS", 0.01)
    original, failures = ledger.read_back, [BusUnavailable("no answer"), BusUnavailable("no answer")]

    def sometimes(*arguments: Any) -> Iterator[Record]:
        if failures:
            raise failures.pop()
        return original(*arguments)

    monkeypatch.setattr(recorded, "read_back", sometimes)
    with learner(settings_for(bus)) as worker:
        producer.describe(A)
        wait(bus, 1, alive=worker.alive)
    assert worker.metrics.registry.get_sample_value("cgzsl_bus_errors_total") == 2


# ---- inputs that are gone, results that differ


def test_records_that_expired_unread_are_refused_or_their_loss_is_noted(bus: Bus, producer: Producer) -> None:
    with learner(settings_for(bus)) as worker:
        producer.describe(A)
        wait(bus, 1, alive=worker.alive)
    producer.events("features", *examples([A], 5), partition=1)
    producer.boundary()
    expire(bus, TOPICS["features"], 1, 3)
    worker = learner(settings_for(bus))
    with pytest.raises(Expired, match=r"t\.features/1 \[0, 3\).*--accept-loss"), worker:
        worker.wait()
    assert len(ledger.read_all(bus, TOPICS)) == 2
    with learner(settings_for(bus), accept_loss=True) as worker:
        record = wait(bus, 2, alive=worker.alive)
    assert record.ranges["features"][1] == Range(start=3, end=5, accepted=2, lost=3)
    assert (check(bus, TOPICS).problems, check(bus, TOPICS).lost) == ([], 3)


def test_with_a_snapshot_learned_records_may_expire(bus: Bus, producer: Producer) -> None:
    with learner(settings_for(bus, **NO_DESCRIBE)) as worker:
        producer.describe(A, B)
        producer.events("features", *examples([A], 4), partition=0)
        producer.boundary()
        wait(bus, 1, alive=worker.alive)
    expire(bus, TOPICS["features"], 0, 4)
    with learner(settings_for(bus)) as worker:
        producer.events("features", *examples([B], 4), partition=0)
        producer.boundary()
        record = wait(bus, 2, alive=worker.alive)
    assert (record.kind, record.seen) == ("train", 2)


def test_a_result_that_is_not_reproducible_is_refused_unless_it_is_accepted(
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
    with learner(settings) as worker:  # it starts from the new snapshot
        producer.describe(C)
        producer.boundary()
        wait(bus, 3, alive=worker.alive)


# ---- rollback


def rolled_back(bus: Bus, producer: Producer, **others: Any) -> list[LedgerRecord]:
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
def test_a_rollback_restores_an_earlier_generation(bus: Bus, producer: Producer, every: int) -> None:
    records = rolled_back(bus, producer, snapshot_every=every)
    one, two, three = (load_generation(bus, TOPICS, r) for r in records[1:])
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
def test_after_a_rollback_the_stream_continues_even_after_a_restart(bus: Bus, producer: Producer, every: int) -> None:
    rolled_back(bus, producer, snapshot_every=every)
    with learner(settings_for(bus, snapshot_every=every)) as worker:
        producer.teach(B, rows=6)  # they were in the window that was rolled back: not duplicates
        producer.boundary()
        record = wait(bus, 4, alive=worker.alive)
    assert (record.kind, record.seen, record.unseen) == ("train", 2, 0)
    assert sum(s.accepted for s in record.ranges["features"].values()) == 6
    assert check(bus, TOPICS).problems == []


def test_a_rollback_keeps_the_current_configuration(bus: Bus, producer: Producer) -> None:
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


def test_a_rollback_that_is_no_longer_possible_is_a_failed_window(bus: Bus, producer: Producer) -> None:
    """Window 1 has no snapshot of its own, and its records have expired."""
    with learner(settings_for(bus, snapshot_every=2, **NO_DESCRIBE)) as worker:
        producer.describe(A, B)
        producer.events("features", *examples([A], 4), partition=0)
        producer.boundary()
        wait(bus, 1, alive=worker.alive)
        producer.events("features", *examples([B], 4), partition=0)
        producer.boundary()
        before = wait(bus, 2, alive=worker.alive)
        expire(bus, TOPICS["features"], 0, 4)
        producer.events("control", Rollback(to=1))
        failed = wait(bus, 3, alive=worker.alive)
        assert (failed.kind, failed.to, failed.closed_by) == ("failed", None, "rollback")
        assert (failed.error or "").startswith("generation 1 cannot be restored: window 1 cannot be trained again: ")
        producer.describe(C)
        producer.boundary()
        wait(bus, 4, alive=worker.alive)
    old, new = (load_generation(bus, TOPICS, record) for record in (before, failed))
    np.testing.assert_array_equal(old.vectors, new.vectors)
