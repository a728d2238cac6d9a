"""Killed evaluators and broker outages: one evaluation per generation, one dead letter per invalid record."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from guarded import A, B, C, Child, D, Stream, new_stream
from helpers import WORLD, letters, read
from launcher import Hook, launch

from stream_cgzsl.demo.broker import Broker
from stream_cgzsl.evaluation.evaluate import evaluate
from stream_cgzsl.schemas import Evaluation, Holdout, Message, decode
from stream_cgzsl.serving.generation import Array, Generation
from stream_cgzsl.serving.generation_io import load_generation

ROWS = 6


@dataclass(frozen=True)
class KillInCommit:
    """Kills the process right before or right after its n-th commit."""

    number: int
    after: bool

    def __call__(self) -> None:
        from stream_cgzsl.bus.kafka.writing import KafkaPublisher
        from stream_cgzsl.bus.sqlite.writing import SqlitePublisher

        for publisher in (SqlitePublisher, KafkaPublisher):
            self._wrap(publisher)

    def _wrap(self, publisher: type) -> None:
        original, calls = publisher.commit, 0  # type: ignore[attr-defined]

        def commit(*given: object, **named: object) -> None:
            nonlocal calls
            calls += 1
            if calls == self.number and not self.after:
                os.kill(os.getpid(), signal.SIGKILL)
            original(*given, **named)
            if calls == self.number:
                os.kill(os.getpid(), signal.SIGKILL)

        publisher.commit = commit  # type: ignore[attr-defined]


@contextmanager
def evaluator(stream: Stream, name: str, *hooks: Hook) -> Iterator[Child]:
    log = stream.directory / f"evaluator-{name}.log"
    child = Child(launch(["evaluate", f"--bus={stream.url}", f"--prefix={stream.topics.prefix}"], log, hooks), log)
    try:
        yield child
    finally:
        child.kill()


def hold_out(stream: Stream) -> None:
    """Sends holdout rows of four classes, each twice, and two invalid records."""
    events = [Holdout(class_id=c, id=f"{c}/{n}", vector=row) for c, n, row in held_rows()]
    stream.producer.events("holdout", *events, *events)
    stream.producer.send("holdout", Message(A.encode(), b"?"), Message(A.encode(), b"{}"))


def held_rows() -> list[tuple[str, int, Array]]:
    return [(c, n, row) for c in (A, B, C, D) for n, row in enumerate(WORLD.draw(c, ROWS, 2))]


def evaluations(stream: Stream) -> list[Evaluation]:
    records = read(stream.bus, stream.topics["evaluations"])
    return [e for r in records if isinstance(e := decode("evaluations", r.key, r.value, r.headers), Evaluation)]


def wait_for(stream: Stream, number: int, child: Child) -> None:
    child.wait_until(lambda _: any(e.generation == number for e in evaluations(stream)) or child.alive())


def assert_each_once(stream: Stream) -> None:
    """The published evaluations are what the library computes, and every record is accounted for."""
    expected: list[tuple[int, int, float | None, float | None]] = []
    rows: dict[str, list[Array]] = {}
    for class_id, _, row in held_rows():
        rows.setdefault(class_id, []).append(row)
    before: Generation | None = None
    best: dict[str, float] = {}
    for record in stream.ledger()[1:]:
        generation = load_generation(stream.bus, stream.topics, record)
        found = evaluate(generation, before, rows, best)
        before, best = generation, found.best
        expected.append((found.generation, found.samples, found.harmonic, found.forgetting))
    assert [(e.generation, e.samples, e.harmonic, e.forgetting) for e in evaluations(stream)] == expected
    holdout = stream.topics["holdout"]
    reasons = [letter.reason for letter in letters(stream.bus, stream.topics) if letter.topic == holdout]
    assert sorted(reasons) == ["invalid-field", "not-json"]
    assert stream.check().problems == []


def test_a_killed_evaluator_continues_after_its_last_commit(stream: Stream) -> None:
    hold_out(stream)
    stream.send_tasks()
    stream.learn_until(3)
    for number, after in ((1, False), (1, True), (1, False), (1, True)):  # commits nothing, then 1, nothing, 2
        with evaluator(stream, f"{number}-{after}", KillInCommit(number, after)) as child:
            child.wait(-signal.SIGKILL)
    assert [e.generation for e in evaluations(stream)] == [1, 2]
    with evaluator(stream, "last") as child:
        wait_for(stream, 3, child)
        child.end()
    assert_each_once(stream)


@pytest.mark.kafka
def test_an_unavailable_broker_is_waited_for(restartable: Broker, tmp_path: Path) -> None:
    with new_stream(f"{restartable.url}?patience_ms=4000", tmp_path) as stream:
        hold_out(stream)
        stream.send_tasks(1)
        stream.learn_until(1)
        with evaluator(stream, "patient") as child:
            wait_for(stream, 1, child)
            restartable.stop()
            child.wait_for_log("trying again")
            restartable.restart()
            stream.send_tasks(2, 3)
            stream.learn_until(3)
            wait_for(stream, 3, child)
            child.end()
        assert_each_once(stream)
