"""A scorer follows the generations, answers with one complete generation at a time, and answers at least once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import TOPICS, Producer, new_bus, read, scorer, settings_for, sqlite_url, wait_for_answers
from patience import until
from served_stream import AXES, CLASSES, ask, ask_until, commit, turned

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.sqlite.reading import SqliteSubscription
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger, BusUnavailable, TopicMissing
from stream_cgzsl.schemas import Genesis, LedgerRecord, Message, Prediction, Sample, decode
from stream_cgzsl.serving.follower import Follower
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import commit_of
from stream_cgzsl.windows.commit import Commit, write_commit
from stream_cgzsl.workers import scorer as scorer_module


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


@pytest.fixture
def served(bus: Bus) -> Bus:
    """A bus with generation 1."""
    commit(bus, 0)
    commit(bus, 1, turned(1))
    return bus


@pytest.fixture
def producer(bus: Bus) -> Producer:
    return Producer(bus)


def test_no_answer_mixes_two_generations(served: Bus) -> None:
    with scorer(settings_for(served, top_k=2, batch=5)) as worker:
        for number in range(2, 7):
            Producer(served).ask({f"{number}/{i}": AXES[i] for i in range(16)})
            commit(served, number, turned(number))
            ask_until(served, worker, number)
    answers = [decode("predictions", r.key, r.value, r.headers) for r in read(served, TOPICS["predictions"])]
    predictions = [p for p in answers if isinstance(p, Prediction) and not p.request_id.startswith("probe")]
    assert len(predictions) == 5 * 16
    for prediction in predictions:
        axis = int(prediction.request_id.split("/")[1])
        assert prediction.class_id == CLASSES[(axis + (prediction.generation or 0) - 1) % 16]


def test_a_scorer_starts_with_the_newest_generation(served: Bus) -> None:
    for number in (2, 3):
        commit(served, number, turned(number))
    with scorer(settings_for(served, max_wait=60)) as worker:
        answers = ask(served, worker, q=AXES[0])
    assert answers["q"].generation == 3


def test_a_ledger_without_a_genesis_is_an_error(bus: Bus) -> None:
    commit(bus, 1, turned(1))
    worker = scorer(settings_for(bus))
    with pytest.raises(BrokenLedger, match="does not begin with a genesis"), worker:
        worker.wait()


def test_an_error_while_following_ends_the_worker(served: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Follower, timeout: float) -> bool:  # noqa: ARG001
        raise KeyError("a bug")

    monkeypatch.setattr(Follower, "refresh", broken)
    worker = scorer(settings_for(served))
    with pytest.raises(KeyError, match="a bug"), worker:
        worker.wait()


# ---- at least once


def test_a_restart_continues_after_the_committed_samples(served: Bus) -> None:
    for round_number in range(3):
        with scorer(settings_for(served)) as worker:
            ask(served, worker, **{f"{round_number}-{n}": AXES[n] for n in range(10)})
    assert len(read(served, TOPICS["predictions"])) == 30


def test_samples_that_were_not_committed_are_answered_again_with_the_same_id(
    served: Bus, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bus becomes unavailable between the answers and the commit of their samples."""
    monkeypatch.setattr(scorer_module, "_RETRY_SECONDS", 0.01)
    original, failures = SqliteSubscription.commit, [BusUnavailable("gone")]

    def sometimes(self: SqliteSubscription, offsets: Any) -> None:
        if failures:
            raise failures.pop()
        original(self, offsets)

    monkeypatch.setattr(SqliteSubscription, "commit", sometimes)
    producer.events("samples", *(Sample(request_id=f"q{n}", vector=AXES[n]) for n in range(4)), partition=0)
    with scorer(settings_for(served)) as worker:
        until(lambda: sum(served.committed("t.scorer", TOPICS["samples"]).values()) == 4, "the commit")
    answers = [decode("predictions", r.key, r.value, r.headers) for r in read(served, TOPICS["predictions"])]
    names = sorted(p.request_id for p in answers if isinstance(p, Prediction))
    assert names == ["q0", "q0", "q1", "q1", "q2", "q2", "q3", "q3"]
    assert {p.request_id: p.class_id for p in answers if isinstance(p, Prediction)} == {
        f"q{n}": CLASSES[n] for n in range(4)
    }
    assert worker.metrics.registry.get_sample_value("cgzsl_bus_errors_total") == 1


def test_a_second_scorer_on_one_file_stands_by_and_takes_over(served: Bus) -> None:
    with scorer(settings_for(served)) as first:
        ask(served, first, a=AXES[0])
        with scorer(settings_for(served)) as second:
            ask(served, first, b=AXES[1])
            standby = "no partition of the samples assigned"
            until(lambda: second.worker is not None and second.worker.why_not_ready() == standby, "the standby")
            first.stop.set()
            first.wait()
            answers = ask(served, second, c=AXES[2])
    assert answers["c"].class_id == CLASSES[2]
    assert len(read(served, TOPICS["predictions"])) == 3


def test_metrics_count_answers_by_status(served: Bus, producer: Producer) -> None:
    producer.send("samples", Message(b"bad", b"?"))
    with scorer(settings_for(served)) as worker:
        ask(served, worker, a=AXES[0], b=AXES[1])
        wait_for_answers(served, ["bad"], alive=worker.alive)
    value = worker.metrics.registry.get_sample_value
    assert [value("cgzsl_predictions_total", {"status": s}) for s in ("ok", "invalid", "no-model")] == [2, 1, 0]
    assert (value("cgzsl_generation_number"), value("cgzsl_classes", {"kind": "seen"})) == (1, 8)


def test_missing_topics_end_the_worker(tmp_path: Path) -> None:
    with new_bus(sqlite_url(tmp_path)) as bus:
        worker = scorer(settings_for(bus).model_copy(update={"prefix": "other"}))
        with pytest.raises(TopicMissing, match=r"'other\.windows'"), worker:
            worker.wait()


@pytest.mark.slow
def test_while_a_large_generation_is_loaded_the_previous_one_answers(bus_url: str) -> None:
    """It has 20,000 classes of 512 numbers."""
    topics = Topics(f"t{uuid.uuid4().hex[:8]}")
    genesis = Genesis(attributes=8, features=512, signed=True)
    axes = np.eye(512, dtype=np.float32)
    small = Generation(
        1, ("a", "b"), np.ones(2, bool), axes[:2], np.zeros(2, np.float32), np.zeros(512, np.float32), "cosine"
    )
    random = np.random.default_rng(1)
    names = tuple(f"class-{n:05}" for n in range(20_000))
    vectors = random.normal(size=(20_000, 512)).astype(np.float32)
    vectors[12_345] = 100 * axes[1]
    large = Generation(
        2, names, np.ones(20_000, bool), vectors, np.zeros(20_000, np.float32), np.zeros(512, np.float32), "cosine"
    )
    record = LedgerRecord(number=0, kind="genesis", reason="test", configuration_digest="0" * 64, code="0")
    with new_bus(bus_url, 2, topics) as bus, bus.publisher("big") as publisher:
        write_commit(publisher, topics, Commit(record.model_copy(update={"genesis": genesis})))
        trained = record.model_copy(update={"kind": "train", "number": 1})
        write_commit(publisher, topics, commit_of(trained, small))
        with scorer(settings_for(bus, topics, max_wait=60)) as worker:
            producer, answers = Producer(bus, topics), []
            producer.ask({"q0": axes[1]})
            answers += wait_for_answers(bus, ["q0"], topics, worker.alive).values()
            write_commit(publisher, topics, commit_of(trained.model_copy(update={"number": 2}), large))
            while answers[-1].generation != 2:
                name = f"q{len(answers)}"
                producer.ask({name: axes[1]})
                answers += wait_for_answers(bus, [name], topics, worker.alive).values()
    assert {(a.generation, a.class_id) for a in answers} == {(1, "b"), (2, "class-12345")}
