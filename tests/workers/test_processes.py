"""Workers as processes: their HTTP pages, their logs, and how they end."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    Producer,
    address,
    new_bus,
    process,
    rows_of,
    settings_for,
    sqlite_url,
    wait_for_answers,
    wait_for_window,
)
from patience import PATIENCE_SECONDS

from stream_cgzsl.bus import Bus

pytestmark = pytest.mark.slow

A, B = CLASSES[:2]
QUICK_SECONDS = 10
"""How long Docker waits before it kills; an idle worker needs much less."""


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


def page(url: str) -> tuple[int, str]:
    try:
        with urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def ends(child: Popen[bytes], log: Path, code: int) -> list[str]:
    """The log lines of a worker that ends soon, with this exit code."""
    assert (child.wait(QUICK_SECONDS), "Traceback" in log.read_text()) == (code, False), log.read_text()
    return log.read_text().strip().splitlines()


def test_a_learner_and_a_scorer_from_start_to_end(bus: Bus, tmp_path: Path) -> None:
    """One test for everything: processes take seconds to start."""
    learn_log, score_log = tmp_path / "learn.log", tmp_path / "score.log"
    settings = settings_for(bus, port=0, max_wait=60, **NO_DESCRIBE)
    with ExitStack() as stack:
        score = stack.enter_context(process("score", settings, score_log))
        scorer_pages = address(score_log)
        assert page(f"{scorer_pages}/healthz") == (200, "alive\n")
        assert page(f"{scorer_pages}/readyz") == (503, "no generation loaded yet\n")

        learn = stack.enter_context(process("learn", settings, learn_log))
        producer = Producer(bus)
        producer.describe(A, B)
        producer.teach(A, B)
        producer.boundary()
        wait_for_window(bus, 1)
        producer.ask({"q": rows_of(A, 1)[0]})
        assert wait_for_answers(bus, ["q"])["q"].generation == 1

        assert page(f"{scorer_pages}/readyz") == (200, "ready\n")
        learner_pages = address(learn_log)
        assert page(f"{learner_pages}/readyz") == (200, "ready\n")
        metrics = page(f"{learner_pages}/metrics")[1]
        assert 'cgzsl_windows_total{kind="train",policy="marker"} 1.0' in metrics
        assert "cgzsl_generation_number 1.0" in page(f"{scorer_pages}/metrics")[1]
        status, text = page(f"{learner_pages}/")
        assert (status, text) == (404, "the pages are /metrics, /healthz and /readyz\n")

        learn.send_signal(signal.SIGTERM)
        assert "SIGTERM: finishing" in " ".join(ends(learn, learn_log, 0))
        score.send_signal(signal.SIGINT)
        assert "SIGINT: finishing" in " ".join(ends(score, score_log, 0))
    assert re.search(
        r"window 1, train \(boundary\): 2 described, 20 features, 0 dead; .* 2 seen", learn_log.read_text()
    )
    assert "serving generation 1, 2 classes" in score_log.read_text()


def test_a_replaced_learner_has_its_own_exit_code(bus: Bus, tmp_path: Path) -> None:
    log = tmp_path / "learn.log"
    with process("learn", settings_for(bus), log) as child:
        wait_for_window(bus, 0)
        with bus.publisher("t.learner"):
            Producer(bus).describe(A)
            lines = ends(child, log, 6)
    assert lines[-1].startswith("stream-cgzsl: sqlite:///") and "replaced by a newer one" in lines[-1]


def test_a_port_in_use_is_reported(bus: Bus, tmp_path: Path) -> None:
    log, taken = tmp_path / "one.log", tmp_path / "two.log"
    with process("score", settings_for(bus, port=0), log) as first:
        port = int(address(log).rpartition(":")[2])
        with process("score", settings_for(bus, port=port), taken) as child:
            child.wait(PATIENCE_SECONDS)
            lines = ends(child, taken, 2)
        first.send_signal(signal.SIGTERM)
        ends(first, log, 0)
    assert "choose another --host or --port" in lines[-1]
