"""An older version reads what a newer one wrote: it ignores fields it does not know, but not another event version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    TOPICS,
    InThread,
    Producer,
    learner,
    new_bus,
    questions_about,
    read,
    recorded,
    scorer,
    settings_for,
    sqlite_url,
    wait_for_answers,
)
from helpers import wait_for_window as wait
from ledgers import replace_record
from patience import until

from stream_cgzsl.bus import Bus
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.evaluation import published
from stream_cgzsl.history.check import check
from stream_cgzsl.history.replay import Verdict, verify
from stream_cgzsl.runtime.metrics import EvaluatorMetrics
from stream_cgzsl.schemas import Holdout, Message
from stream_cgzsl.workers.evaluator import EvaluatorWorker

A, B = CLASSES[:2]


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


def evaluated(bus: Bus, generation: int) -> None:
    """Runs an evaluator until it has evaluated a generation."""
    with InThread(EvaluatorWorker, settings_for(bus), EvaluatorMetrics()) as worker:

        def done() -> bool:
            worker.alive()
            last = published.newest(bus, TOPICS)
            return last is not None and last.generation == generation

        until(done, f"the evaluation of generation {generation}")


def teach(bus: Bus, number: int) -> None:
    with learner(settings_for(bus, **NO_DESCRIBE)) as worker:
        Producer(bus).teach(A, B, rows=5, purpose=number)
        Producer(bus).boundary()
        wait(bus, number, alive=worker.alive)


def rewrite(bus: Bus, role: str, change: Any) -> None:
    """Changes the JSON object of every record of a topic."""
    for record in read(bus, TOPICS[role]):
        document = json.loads(record.value or b"")
        change(document)
        replace_record(bus, role, record.offset, Message(record.key, json.dumps(document).encode(), record.headers))


def add_fields(node: Any) -> None:
    """Adds a field to every object that is not a mapping of names."""
    node["from_the_future"] = {"of": ["any", 1]}
    for name in ("genesis", "serving", "projections", "state", "prequential"):
        if isinstance(node.get(name), dict):
            node[name]["from_the_future"] = 1
    for spans in node.get("ranges", {}).values():
        for span in spans.values():
            span["from_the_future"] = None


def test_fields_of_a_newer_version_are_ignored(bus: Bus) -> None:
    producer = Producer(bus)
    producer.describe(A, B)
    producer.events("holdout", *(Holdout(class_id=c, vector=np.ones(16)) for c in ("?", A)))
    teach(bus, 1)
    evaluated(bus, 1)
    for role in ("windows", "evaluations"):
        rewrite(bus, role, add_fields)
    teach(bus, 2)
    evaluated(bus, 2)
    with scorer(settings_for(bus)) as worker:
        questions = questions_about(A, count=2)
        producer.ask(questions)
        answers = wait_for_answers(bus, questions, alive=worker.alive)
    assert {answer.generation for answer in answers.values()} == {2}
    assert check(bus, TOPICS).problems == []
    assert [replayed.verdict for replayed in verify(bus, TOPICS, recorded(bus), "cpu")] == [Verdict.IDENTICAL] * 2


def test_another_version_of_the_ledgers_event_is_refused_with_what_to_do(bus: Bus) -> None:
    Producer(bus).describe(A, B)
    teach(bus, 1)
    rewrite(bus, "windows", lambda document: document.update(type="cgzsl.window.v2"))
    for build in (learner, scorer):
        worker = build(settings_for(bus))
        with pytest.raises(BrokenLedger, match=r"cgzsl\.window\.v2.*newer version.*: upgrade"), worker:
            worker.wait()
