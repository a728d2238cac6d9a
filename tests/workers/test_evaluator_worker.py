"""The evaluator evaluates every generation once, with the right figures, whatever happens to it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import letters, read, sqlite_url
from tested_stream import Stream, assert_same, axis, made, new_stream, rows_of, wait_until_ready

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.errors import BrokenLedger, BusUnavailable
from stream_cgzsl.evaluation import ledger_evaluator
from stream_cgzsl.schemas import Evaluation, Message
from stream_cgzsl.serving.generation_io import GenerationLoader
from stream_cgzsl.workers import leader

BAD = (Message(b"a", b"?"), Message(b"a", b'{"vector":[1,2]}'), Message(None, b'{"vector":[1]}'))
REASONS = ["not-json", "wrong-dimension", "missing-key"]


@pytest.fixture
def stream(bus: Bus) -> Iterator[Stream]:
    """On either bus."""
    with new_stream(bus) as stream:
        yield stream


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Stream]:
    """On a file, for what does not depend on the bus."""
    with connect(sqlite_url(tmp_path)) as bus, new_stream(bus) as stream:
        yield stream


def commit_half(stream: Stream, half: int) -> None:
    """First a described and two trained windows; then more holdout rows, a failed window, a rollback, a trained one."""
    if half == 1:
        stream.hold_out(*rows_of("a", 7), *rows_of("b", 5), *rows_of("c", 6), *rows_of("e", 4))
        stream.commit(made(1, "abc", "", servable=False), "describe")
        stream.commit(made(2, "abc", "a"))
        stream.producer.send("holdout", *BAD)
        stream.commit(made(3, "abcd", "ab"))
    else:
        stream.hold_out(*rows_of("d", 5), *rows_of("a", 3, tag="more "), ("b", None, axis("b")), ("b", None, axis("b")))
        stream.producer.send("holdout", BAD[0])
        stream.commit(made(4, "abcde", "abd"), "failed")
        stream.commit(made(5, "abcd", "ab", seed=1), "rollback", to=3)
        stream.commit(made(6, "abce", "abc"))


# ---- on either bus


def test_evaluations_have_the_right_figures(stream: Stream) -> None:
    with stream.evaluator() as worker:
        commit_half(stream, 1)
        stream.wait_for(3, worker.alive)
        commit_half(stream, 2)
        found = stream.wait_for(6, worker.alive)
    assert_same(found, stream.expected())
    assert [e.samples for e in found] == [0, 18, 18, 32, 28, 27]
    assert [e.forgetting is None for e in found] == [True, True, False, False, False, False]
    assert all(e.area is not None for e in found[1:])
    assert sorted(letter.reason for letter in letters(stream.bus, stream.topics)) == sorted([*REASONS, "not-json"])


def test_a_restart_changes_nothing(stream: Stream) -> None:
    commit_half(stream, 1)
    first = stream.evaluate_until(3)
    commit_half(stream, 2)
    found = stream.evaluate_until(6)
    assert found[:3] == first
    assert_same(found, stream.expected())
    assert sorted(letter.reason for letter in letters(stream.bus, stream.topics)) == sorted([*REASONS, "not-json"])
    holdout = stream.topics["holdout"]
    committed = stream.bus.committed(f"{stream.topics.prefix}.evaluator", holdout)
    assert committed == {p: end for p, end in stream.bus.end_offsets(holdout).items() if end}


def test_of_two_evaluators_one_works_and_the_other_takes_over(stream: Stream) -> None:
    with stream.evaluator() as first, stream.evaluator() as second:

        def alive() -> None:
            first.alive()
            second.alive()

        commit_half(stream, 1)
        stream.wait_for(3, alive)
        value = "cgzsl_evaluations_total", {"outcome": "published"}
        (busy,) = [w for w in (first, second) if w.metrics.registry.get_sample_value(*value)]
        (idle,) = [w for w in (first, second) if w is not busy]
        wait_until_ready(busy, idle)
        busy.stop.set()
        busy.wait()
        commit_half(stream, 2)
        found = stream.wait_for(6, idle.alive)
    assert_same(found, stream.expected())
    assert len(letters(stream.bus, stream.topics)) == 4


# ---- the holdout


def test_without_a_holdout_only_the_drift_is_known(embedded: Stream) -> None:
    embedded.commit(made(1, "ab", "a"))
    embedded.commit(made(2, "ab", "ab"))
    one, two = embedded.evaluate_until(2)
    generations = embedded.generations
    assert one == Evaluation(generation=1, digest=generations[0].digest, samples=0)
    assert two == Evaluation(generation=2, digest=generations[1].digest, samples=0, movement=two.movement)
    assert list(two.movement) == ["a", "b"] and min(two.movement.values()) > 0


def test_holdout_rows_of_a_class_wait_until_it_is_described(embedded: Stream) -> None:
    embedded.hold_out(*rows_of("p", 3))
    embedded.commit(made(1, "ab", "a"))
    embedded.commit(made(2, "abp", "a"))
    one, two = embedded.evaluate_until(2)
    assert (one.samples, one.per_class, two.samples, list(two.per_class)) == (0, {}, 3, ["p"])
    assert letters(embedded.bus, embedded.topics) == []


def test_an_id_counts_once_and_rows_after_the_cut_do_not_count(embedded: Stream) -> None:
    embedded.hold_out(*rows_of("a", 3), *rows_of("a", 3), partition=0)
    embedded.hold_out(*rows_of("a", 3), partition=1)
    embedded.commit(made(1, "a", "a"))
    embedded.hold_out(*rows_of("a", 2, tag="late "))
    assert [e.samples for e in embedded.evaluate_until(1)] == [3]
    embedded.commit(made(2, "a", "a"))
    assert [e.samples for e in embedded.evaluate_until(2)] == [3, 5]


def test_a_budget_limits_the_rows_and_a_restart_keeps_the_same_ones(embedded: Stream) -> None:
    embedded.hold_out(*rows_of("a", 60), *rows_of("b", 60))
    embedded.commit(made(1, "abc", "a"))
    embedded.hold_out(*rows_of("c", 60))
    embedded.commit(made(2, "abc", "a"))
    embedded.commit(made(3, "abc", "a", seed=1))
    budget = {"holdout_gb": 30 * (16 * 4 + 512) / 1e9}
    embedded.evaluate_until(2, **budget)
    one, two, three = embedded.evaluate_until(3, **budget)
    assert (one.samples, two.samples, three.samples) == (30, 30, 30)
    with connect(embedded.bus.url) as bus, new_stream(bus) as other:
        other.hold_out(*rows_of("c", 60), *rows_of("b", 60), *rows_of("a", 60))
        other.commit(replace(made(3, "abc", "a", seed=1), number=1))
        (again,) = other.evaluate_until(1, **budget)
    assert again.per_class == three.per_class


def test_dead_letters_of_a_generation_that_is_gone_are_published_with_the_next(embedded: Stream) -> None:
    embedded.commit(made(1, "ab", "a"))
    embedded.producer.send("holdout", *BAD)
    embedded.hold_out(*rows_of("a", 2))
    embedded.commit(made(2, "ab", "a"))
    embedded.commit(made(3, "ab", "ab"))
    embedded.remove_projection(2)
    with embedded.evaluator() as worker:
        found = embedded.wait_for(3, worker.alive)
    assert [(e.generation, e.samples, bool(e.movement)) for e in found] == [(1, 0, False), (3, 2, False)]
    assert sorted(letter.reason for letter in letters(embedded.bus, embedded.topics)) == sorted(REASONS)
    value = worker.metrics.registry.get_sample_value
    assert value("cgzsl_evaluations_total", {"outcome": "gone"}) == 1
    assert value("cgzsl_evaluations_total", {"outcome": "published"}) == 2
    embedded.commit(made(4, "ab", "ab"))
    assert len(embedded.evaluate_until(4)) == 3
    assert len(letters(embedded.bus, embedded.topics)) == len(REASONS)


def test_a_long_history_that_is_gone_is_skipped_without_reading_it(
    embedded: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 101):
        embedded.commit(made(number, "ab", "a"))
    for number in range(1, 91):
        embedded.remove_projection(number)
    original, loaded = ledger_evaluator.load_generation, []

    def load(bus: Bus, topics: Any, record: Any) -> Any:
        loaded.append(record.number)
        return original(bus, topics, record)

    monkeypatch.setattr(ledger_evaluator, "load_generation", load)
    with embedded.evaluator() as worker:
        found = embedded.wait_for(100, worker.alive)
    assert [e.generation for e in found] == list(range(91, 101))
    assert worker.metrics.registry.get_sample_value("cgzsl_evaluations_total", {"outcome": "gone"}) == 90
    assert len([number for number in loaded if number < 91]) < 10


# ---- metrics, and errors


def test_metrics_show_the_newest_evaluation(embedded: Stream) -> None:
    rows = [*rows_of("a", 4), *rows_of("b", 4), *rows_of("c", 4), *rows_of("d", 4)]
    embedded.hold_out(*rows)
    embedded.commit(made(1, "abcd", "ab"))
    embedded.hold_out(*rows_of("a", 5, tag="late "))
    with embedded.evaluator(class_series=2) as worker:
        (evaluation,) = embedded.wait_for(1, worker.alive)
        wait_until_ready(worker)
        value = worker.metrics.registry.get_sample_value
        assert value("cgzsl_lag_records", {"role": "holdout"}) == 5
    for kind in ("seen", "unseen", "harmonic"):
        assert value("cgzsl_holdout_accuracy_ratio", {"kind": kind}) == getattr(evaluation, kind)
    assert (value("cgzsl_seen_unseen_area_ratio"), value("cgzsl_holdout_records")) == (evaluation.area, 16)
    assert math.isnan(value("cgzsl_forgetting_ratio") or 0.0)
    assert value("cgzsl_evaluation_seconds_count") == 1
    assert value("cgzsl_generation_number") == 1
    assert (value("cgzsl_last_success_timestamp_seconds") or 0) > 0
    series = {c: value("cgzsl_class_accuracy_ratio", {"class_id": c}) for c in "abcd"}
    worst = sorted(evaluation.per_class, key=lambda c: (evaluation.per_class[c], c))[:2]
    assert series == {c: evaluation.per_class[c] if c in worst else None for c in "abcd"}


def test_after_a_restart_metrics_show_the_newest_evaluation(embedded: Stream) -> None:
    embedded.hold_out(*rows_of("a", 4), *rows_of("b", 4))
    embedded.commit(made(1, "ab", "a"))
    (evaluation,) = embedded.evaluate_until(1)
    with embedded.evaluator() as worker:
        wait_until_ready(worker)
    value = worker.metrics.registry.get_sample_value
    assert value("cgzsl_holdout_accuracy_ratio", {"kind": "seen"}) == evaluation.seen
    assert value("cgzsl_evaluations_total", {"outcome": "published"}) == 0
    assert len(embedded.evaluations()) == 1


def test_an_unavailable_bus_is_waited_for(embedded: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "_RETRY_SECONDS", 0.01)
    original, failures = GenerationLoader.load, [BusUnavailable("no answer"), BusUnavailable("no answer")]

    def sometimes(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return original(*arguments)

    monkeypatch.setattr(GenerationLoader, "load", sometimes)
    embedded.hold_out(*rows_of("a", 4))
    embedded.commit(made(1, "ab", "a"))
    with embedded.evaluator() as worker:
        embedded.wait_for(1, worker.alive)
    assert_same(embedded.evaluations(), embedded.expected())
    assert worker.metrics.registry.get_sample_value("cgzsl_bus_errors_total") == 2


def test_evaluations_of_another_stream_are_refused(embedded: Stream) -> None:
    embedded.commit(made(1, "ab", "a"))
    embedded.producer.events("evaluations", Evaluation(generation=1, digest="0" * 64, samples=0))
    worker = embedded.evaluator()
    with pytest.raises(BrokenLedger, match=r"evaluations is of generation 1 .* it belongs to another stream"), worker:
        worker.wait()


def test_foreign_records_among_the_evaluations_are_skipped(embedded: Stream) -> None:
    embedded.commit(made(1, "ab", "a"))
    embedded.evaluate_until(1)
    embedded.producer.send("evaluations", Message(b"?", b"?"))
    embedded.commit(made(2, "ab", "a"))
    with embedded.evaluator() as worker:
        wait_until_ready(worker)
    assert [record.key for record in read(embedded.bus, embedded.topics["evaluations"])] == [b"1", b"?", b"2"]
