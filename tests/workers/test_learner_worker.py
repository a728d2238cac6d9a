"""The learner on a real file: what it commits, what it survives, and when it must stop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    TOPICS,
    WORLD,
    Producer,
    examples,
    learner,
    letters,
    new_bus,
    read,
    settings_for,
    sqlite_url,
)
from helpers import wait_for_window as wait

from stream_cgzsl.bus import Bus
from stream_cgzsl.errors import Fenced, TooManyDeadLetters, TopicMissing, TrainingFailed, UsageError
from stream_cgzsl.history.check import check
from stream_cgzsl.learners.kernel.closed_form import ClosedForm
from stream_cgzsl.runtime.environment import environment
from stream_cgzsl.schemas import Genesis, LedgerRecord, Message, Range, Rollback
from stream_cgzsl.serving.generation_io import load_generation
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.identity import topic_ids

A, B, C, D = CLASSES[:4]
FAILED = {"kind": "failed", "policy": "marker"}


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


@pytest.fixture
def producer(bus: Bus) -> Producer:
    return Producer(bus)


def digests(bus: Bus) -> list[str | None]:
    return [record.generation for record in ledger.read_all(bus, TOPICS)]


# ---- what is committed


def test_the_genesis_fixes_what_never_changes(bus: Bus) -> None:
    with learner(settings_for(bus, signed=True, seed=7)) as worker:
        record = wait(bus, 0, alive=worker.alive)
    first = {0: Range(start=0, end=0), 1: Range(start=0, end=0)}
    assert record.model_copy(update={"configuration": None, "configuration_digest": "0" * 64}) == LedgerRecord(
        number=0,
        kind="genesis",
        reason="genesis",
        topic_ids=topic_ids(bus, TOPICS),
        genesis=Genesis(attributes=8, features=16, signed=True, seed=7),
        ranges={"attributes": first, "features": first, "control": {0: Range(start=0, end=0)}},
        holdout={0: 0, 1: 0},
        configured=0,
        configuration_digest="0" * 64,
        code=record.code,
        environment=environment("cpu"),
    )
    assert record.configuration == {"learner": "closed-form", "options": {}, "memory_bytes": 2_000_000_000}


def test_dimensions_in_later_settings_change_nothing(bus: Bus) -> None:
    with learner(settings_for(bus)) as worker:
        wait(bus, 0, alive=worker.alive)
    with learner(settings_for(bus, attributes=99, features=99, seed=3)) as worker:
        Producer(bus).describe(A)
        record = wait(bus, 1, alive=worker.alive)
    assert (record.unseen, letters(bus)) == (1, [])


def test_classes_are_described_then_learned(bus: Bus, producer: Producer) -> None:
    with learner(settings_for(bus)) as worker:
        producer.describe(A, B, C)
        described = wait(bus, 1, alive=worker.alive)
        producer.teach(A, B, rows=6)
        producer.boundary("task 1")
        trained = wait(bus, 2, alive=worker.alive)
    assert (described.kind, described.reason, described.seen, described.unseen) == ("describe", "describe", 0, 3)
    assert (trained.kind, trained.reason, trained.seen, trained.unseen) == ("train", "task 1", 2, 1)
    assert sum(s.accepted for s in described.ranges["attributes"].values()) == 3
    assert sum(s.accepted for s in trained.ranges["features"].values()) == 12
    assert trained.ranges["control"] == {0: Range(start=0, end=1, accepted=1)}
    assert trained.state is not None and trained.configuration is None
    generation = load_generation(bus, TOPICS, trained)
    assert generation.class_ids == tuple(sorted([A, B, C]))
    assert [WORLD.name(c) for c in generation.class_ids] == [
        dict(r.headers)["ce_name"].decode() for r in read(bus, TOPICS["projections"])[-3:]
    ]


def test_windows_have_no_gaps_and_every_record_is_accounted_for(bus: Bus, producer: Producer) -> None:
    with learner(settings_for(bus, count=7)) as worker:
        producer.describe(A, B)
        wait(bus, 1, alive=worker.alive)
        producer.teach(A, B, rows=7)
        wait(bus, 3, alive=worker.alive)
        producer.send("features", Message(b"?", b"?"), Message(b"stranger", b"{}"))
        producer.send("control", Message(None, b"?"))
        producer.teach(A, B, rows=1)  # again: duplicates
        producer.teach(B, rows=2, purpose=3)
        producer.events("control", Rollback(to=99))
        producer.boundary()
        wait(bus, 4, alive=worker.alive)
    found = check(bus, TOPICS)
    assert found.problems == []
    assert (found.windows, found.accepted, found.duplicate, found.dead, found.waiting) == (4, 2 + 14 + 2 + 1, 2, 4, 0)
    assert sorted(letter.reason for letter in letters(bus)) == sorted(
        ["not-json", "invalid-field", "not-json", "unknown-generation"]
    )


def test_a_retired_class_is_withdrawn_from_the_projections(bus: Bus, producer: Producer) -> None:
    with learner(settings_for(bus)) as worker:
        producer.describe(A, B)
        wait(bus, 1, alive=worker.alive)
        producer.retire(A)
        record = wait(bus, 2, alive=worker.alive)
    assert (record.kind, record.unseen) == ("describe", 1)
    assert [(r.key, bool(r.value)) for r in read(bus, TOPICS["projections"])[2:]] == [
        (A.encode(), False),
        (B.encode(), True),
    ]


def test_a_duplicate_is_recognised_for_two_windows(bus: Bus, producer: Producer) -> None:
    counts = []
    with learner(settings_for(bus)) as worker:
        producer.describe(A)
        wait(bus, 1, alive=worker.alive)
        for number in range(2, 7):
            fresh = examples([A], 1, purpose=number)
            producer.events("features", *fresh, *(examples([A], 1, purpose=2) if number in (3, 4, 6) else []))
            producer.boundary()
            spans = wait(bus, number, alive=worker.alive).ranges["features"].values()
            counts.append((sum(s.accepted for s in spans), sum(s.duplicate for s in spans)))
    assert counts == [(1, 0), (1, 1), (1, 1), (1, 0), (2, 0)]


def test_metrics_agree_with_the_ledger(bus: Bus, producer: Producer) -> None:
    with learner(settings_for(bus)) as worker:
        producer.describe(A, B)
        wait(bus, 1, alive=worker.alive)
        producer.teach(A, rows=3)
        producer.teach(A, rows=1)
        producer.send("features", Message(b"?", b"?"))
        producer.boundary()
        wait(bus, 2, alive=worker.alive)
    value = worker.metrics.registry.get_sample_value
    assert value("cgzsl_generation_number") == 2
    assert value("cgzsl_windows_total", {"kind": "train", "policy": "marker"}) == 1
    assert value("cgzsl_windows_total", {"kind": "describe", "policy": "describe"}) == 1
    assert value("cgzsl_classes", {"kind": "seen"}) == 1
    assert value("cgzsl_classes", {"kind": "unseen"}) == 1
    fates = ("accepted", "duplicate", "dead")
    assert [value("cgzsl_records_total", {"role": "features", "fate": fate}) for fate in fates] == [3, 1, 1]
    assert value("cgzsl_dead_letters_total", {"reason": "not-json"}) == 1
    assert value("cgzsl_window_phase_seconds_count", {"phase": "commit"}) == 2
    assert (value("cgzsl_state_bytes") or 0) > 0


# ---- windows that cannot be trained


def test_a_window_that_cannot_be_trained_fails_and_the_stream_continues(
    bus: Bus, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise TrainingFailed("the numbers are not finite")

    with monkeypatch.context() as patched:
        patched.setattr(ClosedForm, "fit", failing)
        with learner(settings_for(bus, snapshot_every=10, **NO_DESCRIBE)) as worker:
            producer.describe(A, B)
            producer.teach(A, rows=4)
            producer.boundary("doomed")
            failed = wait(bus, 1, alive=worker.alive)
    assert (failed.kind, failed.error) == ("failed", "TrainingFailed: the numbers are not finite")
    assert (failed.seen, failed.unseen) == (0, 2)
    assert sum(s.accepted for s in failed.ranges["features"].values()) == 4
    with learner(settings_for(bus, snapshot_every=10, **NO_DESCRIBE)) as worker:  # the failed window stays failed
        producer.teach(B, rows=4)
        producer.boundary()
        after = wait(bus, 2, alive=worker.alive)
    assert (after.kind, after.seen, after.unseen) == ("train", 1, 1)
    assert worker.metrics.registry.get_sample_value("cgzsl_windows_total", FAILED) == 0


def test_more_dead_letters_than_allowed_stop_the_learner_before_it_commits(bus: Bus, producer: Producer) -> None:
    worker = learner(settings_for(bus, dead_letter_limit=1))
    with (
        pytest.raises(TooManyDeadLetters, match="2 records of window 1 are invalid and --dead-letter-limit is 1"),
        worker,
    ):
        producer.send("features", Message(b"?", b"?"), Message(b"?", b"?"))
        producer.boundary()
        worker.wait()
    assert (len(digests(bus)), letters(bus)) == (1, [])
    with learner(settings_for(bus, dead_letter_limit=2)) as again:
        wait(bus, 1, alive=again.alive)
    assert len(letters(bus)) == 2


# ---- leader election


def test_a_second_learner_stands_by_and_takes_over(bus: Bus, producer: Producer) -> None:
    with learner(settings_for(bus)) as first, learner(settings_for(bus)) as second:
        producer.describe(A)
        wait(bus, 1, alive=first.alive)
        (busy,) = [w for w in (first, second) if w.metrics.registry.get_sample_value("cgzsl_learner_active")]
        busy.stop.set()
        busy.wait()
        producer.describe(B)
        record = wait(bus, 2)
    assert (record.kind, record.unseen) == ("describe", 2)


def test_a_replaced_learner_stops(bus: Bus, producer: Producer) -> None:
    worker = learner(settings_for(bus))
    with pytest.raises(Fenced) as caught, worker:
        wait(bus, 0, alive=worker.alive)
        with bus.publisher("t.learner"):
            producer.describe(A)
            worker.wait()
    assert caught.value.exit_code == 6
    assert len(digests(bus)) == 1


def test_missing_topics_are_reported_with_the_command_that_creates_them(tmp_path: Path) -> None:
    with new_bus(sqlite_url(tmp_path)) as bus:
        worker = learner(settings_for(bus).model_copy(update={"prefix": "other"}))
        with (
            pytest.raises(
                TopicMissing, match=r"'other\.attributes'.*stream-cgzsl topics create --bus .* --prefix other"
            ),
            worker,
        ):
            worker.wait()


def test_a_new_stream_without_dimensions_is_a_usage_error(bus: Bus) -> None:
    worker = learner(settings_for(bus, attributes=None))
    with pytest.raises(UsageError, match="--attributes N --features M"), worker:
        worker.wait()
    assert digests(bus) == []


# ---- settings that change


def test_a_changed_configuration_is_in_the_first_record_learned_with_it(bus: Bus, producer: Producer) -> None:
    for number, gigabytes in enumerate((2.0, 1.0, 1.0), 1):
        with learner(settings_for(bus, memory_gb=gigabytes)) as worker:
            producer.describe(CLASSES[number])
            wait(bus, number, alive=worker.alive)
    written = [(r.configuration or {}).get("memory_bytes") for r in ledger.read_all(bus, TOPICS)]
    assert written == [2_000_000_000, None, 1_000_000_000, None]


def test_another_kind_of_learner_cannot_take_over(bus: Bus, producer: Producer) -> None:
    with learner(settings_for(bus)) as worker:
        producer.describe(A)
        wait(bus, 1, alive=worker.alive)
    other = learner(settings_for(bus, learner="ridge"))
    with pytest.raises(UsageError, match="go back to the old settings, or learn the topics again"), other:
        other.wait()
    assert len(digests(bus)) == 2
