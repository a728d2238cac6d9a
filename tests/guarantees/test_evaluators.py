"""Evaluators that are killed, and a broker that goes away: one evaluation a generation, one dead letter a bad record."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from guarded import A, B, C, Child, D, Stream, new_stream
from helpers import WORLD, letters, read
from launcher import Hook, launch

from stream_cgzsl.bus.broker import Broker
from stream_cgzsl.evaluation.evaluate import evaluate
from stream_cgzsl.generation import Array, Generation
from stream_cgzsl.schemas import Evaluation, Holdout, Message, decode
from stream_cgzsl.windows import ledger

ROWS = 6


@dataclass(frozen=True)
class KillInCommit:
    """Kills the process at its n-th commit, just before it or just after."""

    number: int
    after: bool

    def __call__(self) -> None:
        from stream_cgzsl.bus.kafka_writing import KafkaPublisher
        from stream_cgzsl.bus.sqlite_writing import SqlitePublisher

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
    """Test rows of four classes, each twice, and two records that are none."""
    events = [Holdout(class_id=c, id=f"{c}/{n}", vector=row) for c, n, row in held_rows()]
    stream.producer.events("holdout", *events, *events)
    stream.producer.send("holdout", Message(A.encode(), b"?"), Message(A.encode(), b"{}"))


def held_rows() -> list[tuple[str, int, Array]]:
    return [(c, n, row) for c in (A, B, C, D) for n, row in enumerate(WORLD.draw(c, ROWS, 2))]


def evaluations(stream: Stream) -> list[Evaluation]:
    records = read(stream.bus, stream.topics["evaluations"])
    return [e for r in records if isinstance(e := decode("evaluations", r.key, r.value, r.headers), Evaluation)]


def wait_for(stream: Stream, number: int, child: Child) -> None:
    deadline = time.monotonic() + 60
    while not any(e.generation == number for e in evaluations(stream)):
        child.alive()
        assert time.monotonic() < deadline, child.log()
        time.sleep(0.05)


def assert_each_once(stream: Stream) -> None:
    """What is published is what the library says of the generations, and all is accounted for."""
    expected: list[tuple[int, int, float | None, float | None]] = []
    rows: dict[str, list[Array]] = {}
    for class_id, _, row in held_rows():
        rows.setdefault(class_id, []).append(row)
    before: Generation | None = None
    best: dict[str, float] = {}
    for record in stream.ledger()[1:]:
        generation = ledger.load_generation(stream.bus, stream.topics, record)
        found = evaluate(generation, before, rows, best)
        before, best = generation, found.best
        expected.append((found.generation, found.samples, found.harmonic, found.forgetting))
    assert [(e.generation, e.samples, e.harmonic, e.forgetting) for e in evaluations(stream)] == expected
    holdout = stream.topics["holdout"]
    reasons = [letter.reason for letter in letters(stream.bus, stream.topics) if letter.topic == holdout]
    assert sorted(reasons) == ["invalid-field", "not-json"]
    assert stream.check().problems == []


def test_killed_before_and_after_a_commit_it_goes_on_behind_what_is_there(stream: Stream) -> None:
    hold_out(stream)
    stream.tell()
    stream.learn_until(3)
    for number, after in ((1, False), (1, True), (1, False), (1, True)):  # nothing, 1, nothing more, 2
        with evaluator(stream, f"{number}-{after}", KillInCommit(number, after)) as child:
            child.wait(-signal.SIGKILL)
    assert [e.generation for e in evaluations(stream)] == [1, 2]
    with evaluator(stream, "last") as child:
        wait_for(stream, 3, child)
        child.end()
    assert_each_once(stream)


@pytest.mark.kafka
def test_a_broker_that_goes_away_is_waited_for(mortal: Broker, tmp_path: Path) -> None:
    with new_stream(f"{mortal.url}?patience_ms=4000", tmp_path) as stream:
        hold_out(stream)
        stream.tell(1)
        stream.learn_until(1)
        with evaluator(stream, "patient") as child:
            wait_for(stream, 1, child)
            mortal.stop()
            child.wait_for_log("trying again")
            mortal.restart()
            stream.tell(2, 3)
            stream.learn_until(3)
            wait_for(stream, 3, child)
            child.end()
        assert_each_once(stream)
