"""What a learner exports to Prometheus besides what is in its ledger."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    InThread,
    Producer,
    learner,
    new_bus,
    settings_for,
    sqlite_url,
    wait_for_window,
)
from patience import PATIENCE_SECONDS, until

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.sqlite.writing import SqlitePublisher
from stream_cgzsl.errors import BusUnavailable, Cancelled, Fenced
from stream_cgzsl.learners.kernel.closed_form import ClosedForm
from stream_cgzsl.runtime.metrics import LearnerMetrics
from stream_cgzsl.schemas import Message
from stream_cgzsl.workers import leader
from stream_cgzsl.workers import learner as learner_module
from stream_cgzsl.workers.learner_reporting import Backlog, count_outcome

A, B, C = CLASSES[:3]
ROLES = ("attributes", "features", "control")
OUTCOMES = ("committed", "aborted", "fenced", "unknown")


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


def value(worker: InThread, name: str, **labels: str) -> float:
    found = worker.metrics.registry.get_sample_value(name, labels)
    assert found is not None, (name, labels)
    return float(found)


def lags(metrics: LearnerMetrics) -> list[float | None]:
    return [metrics.registry.get_sample_value("cgzsl_lag_records", {"role": role}) for role in ROLES]


def outcomes(metrics: LearnerMetrics) -> dict[str, float | None]:
    find = metrics.registry.get_sample_value
    return {outcome: find("cgzsl_transactions_total", {"outcome": outcome}) for outcome in OUTCOMES}


# ---- the backlog


def test_a_window_is_open_from_its_first_record_until_its_commit() -> None:
    times = iter([100.0, 200.0, 300.0])
    metrics = LearnerMetrics()
    backlog = Backlog(metrics, lambda: next(times))
    exported = []
    for window, features in [(1, 0), (1, 3), (1, 5), (2, 0), (2, 1), (3, 4)]:
        backlog.update(window, {"attributes": 0, "features": features, "control": 0})
        exported.append((metrics.registry.get_sample_value("cgzsl_open_window_timestamp_seconds"), lags(metrics)))
    assert exported == [
        (0, [0, 0, 0]),
        (100, [0, 3, 0]),
        (100, [0, 5, 0]),
        (0, [0, 0, 0]),
        (200, [0, 1, 0]),
        (300, [0, 4, 0]),  # they arrived while window 2 was trained
    ]
    backlog.clear()
    assert metrics.registry.get_sample_value("cgzsl_open_window_timestamp_seconds") == 0
    assert lags(metrics) == [0, 0, 0]


def test_the_backlog_is_exported_while_records_wait_and_while_they_are_trained(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    training, go_on = threading.Event(), threading.Event()
    original = ClosedForm.fit

    def slowly(self: ClosedForm, window: Any, monitor: Any) -> Any:
        training.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return original(self, window, monitor)

    monkeypatch.setattr(ClosedForm, "fit", slowly)
    producer = Producer(bus)
    with learner(settings_for(bus, **NO_DESCRIBE)) as worker:
        producer.describe(A, B)
        producer.teach(A, rows=3)
        producer.send("control", Message(None, b"?"))
        until(lambda: lags(worker.metrics) == [2, 3, 0])
        since = value(worker, "cgzsl_open_window_timestamp_seconds")
        assert time.time() - PATIENCE_SECONDS < since <= time.time()
        producer.boundary()
        assert training.wait(PATIENCE_SECONDS)
        assert (lags(worker.metrics), value(worker, "cgzsl_open_window_timestamp_seconds")) == ([2, 3, 2], since)
        go_on.set()
        wait_for_window(bus, 1, alive=worker.alive)
        until(lambda: lags(worker.metrics) == [0, 0, 0])
        assert value(worker, "cgzsl_open_window_timestamp_seconds") == 0
        assert value(worker, "cgzsl_last_success_timestamp_seconds") >= since


# ---- who leads


def test_one_learner_leads_and_the_other_is_ready_to_take_over(bus: Bus) -> None:
    with learner(settings_for(bus)) as first:
        wait_for_window(bus, 0, alive=first.alive)
        with learner(settings_for(bus)) as second:
            until(lambda: second.worker is not None and second.worker.why_not_ready() is None)
            both = [
                (value(w, "cgzsl_learner_active"), w.worker.why_not_ready(), value(w, "cgzsl_rebalances_total"))
                for w in (first, second)
            ]
            assert both == [(1, None, 1), (0, None, 0)]
            first.stop.set()
            first.wait()
            until(lambda: value(second, "cgzsl_learner_active") == 1)
            until(lambda: value(second, "cgzsl_rebalances_total") == 1)
            assert value(first, "cgzsl_learner_active") == 0


def test_a_learner_is_not_ready_before_it_is_restored(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    restoring, go_on = threading.Event(), threading.Event()
    original = learner_module.Restorer.at

    def slowly(self: Any, number: int) -> Any:
        restoring.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return original(self, number)

    monkeypatch.setattr(learner_module.Restorer, "at", slowly)
    with learner(settings_for(bus)) as worker:
        assert restoring.wait(PATIENCE_SECONDS)
        assert worker.worker.why_not_ready() == "not restored from the ledger yet"
        assert value(worker, "cgzsl_learner_active") == 1
        go_on.set()
        until(lambda: worker.worker.why_not_ready() is None)


def test_a_restarted_learner_exports_the_generation_it_has(bus: Bus) -> None:
    with learner(settings_for(bus)) as worker:
        Producer(bus).describe(A, B)
        wait_for_window(bus, 1, alive=worker.alive)
    with learner(settings_for(bus)) as again:
        until(lambda: again.worker is not None and again.worker.why_not_ready() is None)
        assert value(again, "cgzsl_generation_number") == 1
        assert value(again, "cgzsl_classes", kind="unseen") == 2


# ---- how commits end


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, "committed"),
        (Cancelled("by hand"), "aborted"),
        (Fenced("replaced"), "fenced"),
        (BusUnavailable("gone"), "unknown"),
    ],
)
def test_a_transaction_is_counted_by_how_it_ended(error: Exception | None, outcome: str) -> None:
    metrics = LearnerMetrics()
    try:
        with count_outcome(metrics):
            if error is not None:
                raise error
    except type(error) as caught:  # type: ignore[misc]
        assert caught is error
    assert outcomes(metrics) == {**dict.fromkeys(OUTCOMES, 0.0), outcome: 1.0}


def test_a_commit_with_an_unknown_outcome_is_counted_and_the_window_repeated(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader, "_RETRY_SECONDS", 0.01)
    original, failures = SqlitePublisher.commit, [BusUnavailable("no answer")]

    def once(self: SqlitePublisher, group: str, consumed: Any) -> None:
        if failures and consumed and any(end for end in consumed.values()):
            raise failures.pop()
        original(self, group, consumed)

    monkeypatch.setattr(SqlitePublisher, "commit", once)
    with learner(settings_for(bus)) as worker:
        Producer(bus).describe(A)
        wait_for_window(bus, 1, alive=worker.alive)
        until(lambda: value(worker, "cgzsl_generation_number") == 1)
    assert outcomes(worker.metrics) == {"committed": 2, "aborted": 0, "fenced": 0, "unknown": 1}
    assert value(worker, "cgzsl_bus_errors_total") == 1


def test_a_commit_that_succeeded_without_an_answer_is_counted_after_all(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader, "_RETRY_SECONDS", 0.01)
    original, failures = SqlitePublisher.commit, [BusUnavailable("no answer")]

    def unheard(self: SqlitePublisher, group: str, consumed: Any) -> None:
        original(self, group, consumed)
        if failures and consumed and any(end for end in consumed.values()):
            raise failures.pop()

    monkeypatch.setattr(SqlitePublisher, "commit", unheard)
    with learner(settings_for(bus)) as worker:
        Producer(bus).describe(A, B)
        wait_for_window(bus, 1, alive=worker.alive)
        until(lambda: value(worker, "cgzsl_generation_number") == 1)
        assert value(worker, "cgzsl_records_total", role="attributes", fate="accepted") == 2
        Producer(bus).describe(C)
        wait_for_window(bus, 2, alive=worker.alive)
        until(lambda: value(worker, "cgzsl_records_total", role="attributes", fate="accepted") == 3)


# ---- training


def test_replayed_features_are_counted_once_per_training(bus: Bus) -> None:
    options = {"hidden": 8, "batch": 8, "max_iterations": 2, "replay": 5}
    producer = Producer(bus)
    with learner(settings_for(bus, learner="adversarial", options=options, **NO_DESCRIBE)) as worker:
        producer.describe(A, B)
        counts = []
        for number, taught in enumerate([A, B, None], 1):  # the third window has nothing to train
            if taught is not None:
                producer.teach(taught, rows=5)
            producer.boundary()
            record = wait_for_window(bus, number, alive=worker.alive)
            counts.append(record.serving.calibration if record.serving else {})
        until(lambda: value(worker, "cgzsl_generation_number") == 3)
    exported = [value(worker, "cgzsl_replayed_features_total", fate=fate) for fate in ("kept", "rejected")]
    assert exported == [counts[1]["replay_kept"], counts[1]["replay_rejected"]]
    assert sum(exported) == 5
    assert counts[2]["replay_kept"] + counts[2]["replay_rejected"] == 5  # repeated in the record, and not counted again


def test_without_an_accelerator_its_memory_is_zero(bus: Bus) -> None:
    with learner(settings_for(bus, device="cpu")) as worker:
        Producer(bus).describe(A)
        wait_for_window(bus, 1, alive=worker.alive)
    assert value(worker, "cgzsl_device_memory_bytes") == 0
