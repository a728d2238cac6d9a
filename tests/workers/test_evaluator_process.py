"""The evaluator as a process: its HTTP pages, its log, how it ends, and continuing after a SIGKILL."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    TOPICS,
    Producer,
    letters,
    new_bus,
    process,
    rows_of,
    settings_for,
    sqlite_url,
    wait_for_window,
)
from patience import until
from test_processes import address, ends, page
from tested_stream import assert_same, made, new_stream
from tested_stream import rows_of as rows_around

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.history.check import check
from stream_cgzsl.schemas import Holdout, Message

pytestmark = pytest.mark.slow

A, B = CLASSES[:2]


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


def wait_for_page(url: str, text: str) -> str:
    until(lambda: text in page(url)[1], text)
    return page(url)[1]


def test_an_evaluator_and_a_learner_from_start_to_end(bus: Bus, tmp_path: Path) -> None:
    learn_log, log = tmp_path / "learn.log", tmp_path / "evaluate.log"
    settings = settings_for(bus, port=0, **NO_DESCRIBE)
    producer = Producer(bus)
    with ExitStack() as stack:
        evaluate = stack.enter_context(process("evaluate", settings, log))
        learn = stack.enter_context(process("learn", settings, learn_log))
        producer.describe(A, B)
        producer.teach(A)
        producer.events("holdout", *(Holdout(class_id=c, vector=row) for c in (A, B) for row in rows_of(c)))
        producer.send("holdout", Message(A.encode(), b"?"))
        producer.boundary()
        wait_for_window(bus, 1)
        pages = address(log)
        metrics = wait_for_page(f"{pages}/metrics", 'cgzsl_evaluations_total{outcome="published"} 1.0')
        assert "cgzsl_holdout_records 10.0" in metrics
        assert 'cgzsl_dead_letters_total{reason="not-json"} 1.0' in metrics
        wait_for_page(f"{pages}/readyz", "ready\n")
        assert page(f"{pages}/healthz") == (200, "alive\n")
        for child, its_log in ((evaluate, log), (learn, learn_log)):
            child.send_signal(signal.SIGTERM)
            ends(child, its_log, 0)
    assert "generation 1, train: 10 samples; seen " in log.read_text()
    assert [letter.reason for letter in letters(bus)] == ["not-json"]
    assert check(bus, TOPICS).problems == []


def test_a_killed_evaluator_continues_after_its_last_evaluation(tmp_path: Path) -> None:
    """It is killed four times, each time as soon as it has published anything of a backlog."""
    with connect(sqlite_url(tmp_path)) as bus, new_stream(bus) as stream:
        stream.hold_out(*rows_around("a", 9), *rows_around("b", 9), *rows_around("c", 9))
        for number in range(1, 25):
            stream.commit(made(number, "abc", "ab"[: 1 + number // 4]))
        settings = settings_for(bus, stream.topics)
        for attempt in range(4):
            with process("evaluate", settings, tmp_path / f"{attempt}.log") as child:
                before = len(stream.evaluations())
                until(lambda: len(stream.evaluations()) > min(before, 23), "another evaluation")  # noqa: B023
                child.kill()
        assert_same(stream.evaluate_until(24), stream.expected())
