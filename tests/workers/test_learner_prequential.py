"""What a learner measures along the way: prequential accuracy, losses and the drift of projections."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    TOPICS,
    WORLD,
    InThread,
    Producer,
    learner,
    new_bus,
    recorded,
    settings_for,
    sqlite_url,
)
from helpers import wait_for_window as wait

from stream_cgzsl.bus import Bus
from stream_cgzsl.evaluation.projection_drift import projection_drift
from stream_cgzsl.history.relearn import relearn, sharing_inputs
from stream_cgzsl.history.stream_learner import Configuration
from stream_cgzsl.learners.interface import Losses, Progress
from stream_cgzsl.schemas import LedgerRecord, Prequential
from stream_cgzsl.serving.generation_io import load_generation
from stream_cgzsl.windows import ledger

A, B, C, D = CLASSES[:4]


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


def learned(bus: Bus, restart: bool = False, **settings: Any) -> tuple[list[LedgerRecord], InThread]:
    """Three windows: examples of A and B; then of all three and of D, which is new; then no examples."""
    producer = Producer(bus)
    steps = (
        lambda: (producer.describe(A, B, C), producer.teach(A, B, rows=12)),
        lambda: (producer.describe(D), producer.teach(A, B, C, D, rows=9, purpose=3)),
        lambda: producer.describe(A),
    )
    with ExitStack() as stack:
        for number, step in enumerate(steps, 1):
            if restart or number == 1:
                stack.close()
                worker = stack.enter_context(learner(settings_for(bus, **NO_DESCRIBE, **settings)))
            step()
            producer.boundary()
            wait(bus, number, alive=worker.alive)
    return ledger.read_all(bus, TOPICS), worker


def test_a_window_is_classified_by_the_previous_generation_before_it_is_learned(bus: Bus) -> None:
    records, _ = learned(bus)
    before = load_generation(bus, TOPICS, records[1])

    def accuracy(class_id: str) -> float:
        answers = before.classify(WORLD.draw(class_id, 9, 3)).indices[:, 0]
        return float(np.mean([before.class_ids[index] == class_id for index in answers]))

    expected = Prequential(rows=27, seen=(accuracy(A) + accuracy(B)) / 2, unseen=accuracy(C))
    assert [record.prequential for record in records] == [None, None, expected, None]


def test_restarts_do_not_change_the_prequential_accuracy(bus: Bus, tmp_path: Path) -> None:
    with new_bus(sqlite_url(tmp_path, "other")) as other:
        whole, _ = learned(other)
    assert [r.prequential for r in learned(bus, restart=True)[0]] == [r.prequential for r in whole]


def test_without_the_previous_generation_there_is_no_prequential_accuracy(bus: Bus) -> None:
    producer = Producer(bus)
    with learner(settings_for(bus, **NO_DESCRIBE)) as worker:
        producer.describe(A, B)
        producer.teach(A, B)
        producer.boundary()
        wait(bus, 1, alive=worker.alive)
    with closing(sqlite3.connect(bus.url.removeprefix("sqlite:///"))) as db, db:
        (place,) = db.execute("SELECT id FROM partitions WHERE topic = ?", (TOPICS["projections"],)).fetchone()
        db.execute("DELETE FROM records WHERE place >> 40 = ?", (place,))
    with learner(settings_for(bus, **NO_DESCRIBE)) as worker:
        producer.teach(A, B, purpose=3)
        producer.boundary()
        record = wait(bus, 2, alive=worker.alive)
    assert (record.kind, record.prequential) == ("train", None)


def test_the_prequential_accuracy_and_the_drift_are_exported(bus: Bus) -> None:
    records, worker = learned(bus)
    found = records[2].prequential
    assert found is not None and found.seen is not None and found.unseen is not None
    value = worker.metrics.registry.get_sample_value
    assert value("cgzsl_prequential_accuracy_ratio", {"kind": "seen"}) == found.seen
    assert value("cgzsl_prequential_accuracy_ratio", {"kind": "unseen"}) == found.unseen
    harmonic = 2 * found.seen * found.unseen / (found.seen + found.unseen)
    assert value("cgzsl_prequential_accuracy_ratio", {"kind": "harmonic"}) == harmonic
    two, three = (load_generation(bus, TOPICS, record) for record in records[2:])
    angles = list(projection_drift(two, three).values())
    assert value("cgzsl_projection_drift_radians", {"statistic": "max"}) == max(angles)
    assert value("cgzsl_projection_drift_radians", {"statistic": "mean"}) == pytest.approx(np.mean(angles))


def test_the_last_losses_of_a_window_are_in_its_record(bus: Bus) -> None:
    records, worker = learned(bus, learner="adversarial", options={"max_iterations": 6})
    terms = {"gan_d", "gan_g", "rcl", "snl", "pcl", "sal", "nuclear", "first_moment", "second_moment"}
    without_unseen = terms - {"snl"}
    assert [set(record.losses) for record in records] == [set(), terms, without_unseen, set()]
    value = worker.metrics.registry.get_sample_value
    assert {term: value("cgzsl_loss", {"term": term}) for term in without_unseen} == records[2].losses


def test_losses_that_are_not_finite_are_left_out() -> None:
    losses = Losses()
    losses.progress(Progress(1, 2, {"a": 1.0, "b": 2.0, "c": 3.0}))
    losses.progress(Progress(2, 2, {"a": 0.5, "b": math.nan, "d": math.inf}))
    assert losses.last() == {"a": 0.5, "c": 3.0}


def test_windows_relearned_into_another_stream_have_a_prequential_accuracy(bus: Bus) -> None:
    records, _ = learned(bus)
    elsewhere = sharing_inputs(TOPICS, "elsewhere")
    bus.create(elsewhere.specs())
    same = Configuration(**(records[0].configuration or {}))
    with bus.publisher("elsewhere.learner") as publisher:
        list(relearn(bus, TOPICS, recorded(bus), same, "cpu", into=(publisher, elsewhere)))
    assert [r.prequential for r in ledger.read_all(bus, elsewhere)] == [r.prequential for r in records]
    other = Configuration("ridge", {}, same.memory_bytes)
    again = sharing_inputs(TOPICS, "again")
    bus.create(again.specs())
    with bus.publisher("again.learner") as publisher:
        list(relearn(bus, TOPICS, recorded(bus), other, "cpu", into=(publisher, again)))
    found, original = ledger.read_all(bus, again)[2].prequential, records[2].prequential
    assert found is not None and original is not None
    assert (found.rows, found != original) == (original.rows, True)
