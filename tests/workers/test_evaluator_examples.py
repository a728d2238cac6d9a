"""Accuracy by number of examples, from a learner's windows to the evaluator's metrics."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean

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
    read,
    settings_for,
    sqlite_url,
)
from helpers import wait_for_window as wait
from patience import PATIENCE_SECONDS
from tested_stream import Stream, made, new_stream, rows_of, wait_until_ready

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.runtime.metrics import EvaluatorMetrics
from stream_cgzsl.schemas import EXAMPLE_BUCKETS, Evaluation, Holdout, Projection, Rollback, decode

A, B, C, D, E, F = CLASSES[:6]


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


def exported(worker: InThread) -> dict[str, float]:
    """The accuracy of each bucket, without those that are not a number."""
    found = {
        bucket: worker.metrics.registry.get_sample_value("cgzsl_accuracy_by_examples_ratio", {"examples": bucket})
        for bucket in EXAMPLE_BUCKETS
    }
    assert None not in found.values()
    return {bucket: share for bucket, share in found.items() if not math.isnan(share)}


def wait_until_exported(worker: InThread, evaluations: int) -> None:
    value, labels = worker.metrics.registry.get_sample_value, {"outcome": "published"}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while value("cgzsl_evaluations_total", labels) < evaluations:
        assert time.monotonic() < deadline, f"not {evaluations} evaluations within {PATIENCE_SECONDS:g} s"
        worker.alive()
        time.sleep(0.05)


def grouped(evaluation: Evaluation, groups: dict[str, tuple[str, ...]]) -> dict[str, float]:
    return {bucket: fmean(evaluation.per_class[c] for c in classes) for bucket, classes in groups.items()}


def test_examples_are_counted_over_windows_and_a_rollback(bus: Bus) -> None:
    producer, stream = Producer(bus), Stream(bus, TOPICS)
    held_out = [Holdout(class_id=c, vector=row) for c in (A, B, C, D, E) for row in WORLD.draw(c, 6, 9)]
    producer.events("holdout", *held_out)
    with learner(settings_for(bus, **NO_DESCRIBE)) as learning, stream.evaluator() as worker:
        producer.describe(A, B, C, D, E, F)
        for class_id, rows in ((A, 25), (B, 2), (C, 6), (D, 4)):
            producer.teach(class_id, rows=rows)
        producer.boundary()
        wait(bus, 1, alive=learning.alive)
        producer.teach(B, rows=1, purpose=3)
        producer.teach(E, rows=2)
        producer.boundary()
        wait(bus, 2, alive=learning.alive)
        wait_until_exported(worker, 2)
        second = exported(worker)
        producer.events("control", Rollback(to=1))
        wait(bus, 3, alive=learning.alive)
        one, two, three = stream.wait_for(3, worker.alive)
    assert one.by_examples == grouped(one, {"0": (E,), "1-2": (B,), "3-5": (D,), "6-20": (C,), ">20": (A,)})
    assert two.by_examples == second == grouped(two, {"1-2": (E,), "3-5": (B, D), "6-20": (C,), ">20": (A,)})
    assert three.by_examples == one.by_examples == exported(worker)
    records = [decode("projections", r.key, r.value, r.headers) for r in read(bus, TOPICS["projections"])]
    last = {p.class_id: p.examples for p in records if isinstance(p, Projection) and p.generation == 3}
    assert last == {A: 25, B: 2, C: 6, D: 4, E: 0, F: 0}


def test_generations_that_do_not_say_have_no_buckets(tmp_path: Path) -> None:
    with connect(sqlite_url(tmp_path)) as bus, new_stream(bus) as stream:
        stream.hold_out(*rows_of("a", 4), *rows_of("b", 4))
        stream.commit(made(1, "ab", "a"))
        stream.commit(replace(made(2, "ab", "a"), examples=None))
        with stream.evaluator() as worker:
            one, two = stream.wait_for(2, worker.alive)
            wait_until_ready(worker)
    assert (list(one.by_examples), two.by_examples, len(two.per_class)) == (["0", "1-2"], {}, 2)
    assert exported(worker) == {}


def test_before_the_first_evaluation_no_bucket_is_a_number(bus: Bus) -> None:
    assert exported(InThread(lambda: None, settings_for(bus), EvaluatorMetrics())) == {}


def test_after_a_restart_the_newest_evaluation_is_exported(tmp_path: Path) -> None:
    with connect(sqlite_url(tmp_path)) as bus, new_stream(bus) as stream:
        stream.hold_out(*rows_of("a", 4), *rows_of("b", 4))
        stream.commit(made(1, "ab", "a"))
        (evaluation,) = stream.evaluate_until(1)
        with stream.evaluator() as worker:
            wait_until_ready(worker)
    assert exported(worker) == evaluation.by_examples != {}
