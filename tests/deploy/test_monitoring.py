"""Real workers on a real broker, scraped by a real Prometheus with the rules we deploy."""

from __future__ import annotations

import re
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from subprocess import Popen
from urllib.request import urlopen

import pytest
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    Producer,
    address,
    examples,
    new_bus,
    process,
    questions_about,
    settings_for,
    wait_for_answers,
    wait_for_window,
)
from known_series import ALERTS, RECORDED, all_exported, known, selectors
from patience import PATIENCE_SECONDS
from prometheus_server import Prometheus, prometheus_with
from test_dashboards import NAMES, TARGETS, filled, variables

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import Holdout, Message
from stream_cgzsl.workers import supervisor as together

STREAM = f"watched-{uuid.uuid4().hex[:8]}"  # a broker may outlive many runs of this test
TOPICS = Topics(STREAM)
WORKERS = {"learner": "learn", "standby": "learn", "scorer 1": "score", "scorer 2": "score", "evaluator": "evaluate"}
LEARNER = {"hidden": 16, "batch": 8, "max_iterations": 5, "replay": 5}


@dataclass
class Watched:
    prometheus: Prometheus
    addresses: dict[str, str]
    processes: dict[str, Popen[bytes]]


def soon(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:g} s: {what}"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def watched(kafka_url: str, prometheus: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A stream with events of every kind, and a Prometheus that has scraped it from its first record on."""
    directory = tmp_path_factory.mktemp("watched")
    with ExitStack() as stack:
        bus = stack.enter_context(new_bus(kafka_url, 2, TOPICS))
        settings = settings_for(
            bus, TOPICS, port=0, class_series=3, max_wait=60, learner="adversarial", options=LEARNER, **NO_DESCRIBE
        )
        logs = {name: directory / f"{name}.log" for name in WORKERS}
        processes = {
            name: stack.enter_context(process(command, settings, logs[name])) for name, command in WORKERS.items()
        }
        addresses = {name: address(log) for name, log in logs.items()}
        server = stack.enter_context(prometheus_with(prometheus, directory / "prometheus", addresses, STREAM))
        soon("all workers scraped", lambda: server.query("count(up == 1)") == [len(WORKERS)])
        soon("one active learner", lambda: server.query("stream:cgzsl_learner_active:sum") == [1])
        try:
            _send_events_of_every_kind(bus)
        except AssertionError as error:
            said = "\n".join(f"--- {name}\n{log.read_text()}" for name, log in logs.items())
            raise AssertionError(f"{error}; the workers said:\n{said}") from error
        yield Watched(server, addresses, processes)


def _send_events_of_every_kind(bus: Bus) -> None:
    """Three windows with seen, rarely seen and unseen classes, holdout, invalid records, and samples in between."""
    producer, (first, second, third, rare, unseen) = Producer(bus, TOPICS), CLASSES[:5]
    producer.describe(first, second, third, rare, unseen)
    held_out = examples((first, second, third, rare, unseen), rows=6, purpose=9)
    producer.events("holdout", *(Holdout(class_id=e.class_id, id=e.id, vector=e.vector) for e in held_out))
    producer.teach(rare, rows=2)
    for window, taught in enumerate([(first, second), (third,), (first, third)], 1):
        producer.teach(*taught, rows=6, purpose=window)
        producer.send("features", Message(b"?", b"?"))
        producer.boundary(f"task {window}")
        wait_for_window(bus, window, TOPICS)
        for batch in range(3):
            questions = questions_about(*taught, unseen, tag=f"{window}/{batch}")
            producer.ask(questions)
            wait_for_answers(bus, questions, TOPICS)
    producer.send("samples", Message(b"nothing", b"?"))


def test_every_panel_shows_something_with_its_legend(watched: Watched) -> None:
    missing = dict.fromkeys(TARGETS, "nothing yet")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while missing and time.monotonic() < deadline:
        time.sleep(0.5)
        missing = {title: what for title in missing if (what := _missing_in(watched.prometheus, TARGETS[title]))}
    assert missing == {}


def _missing_in(server: Prometheus, target: dict[str, str]) -> str:
    query, legend = filled(target["expr"]), re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
    if not server.query(query):
        return f"no values: {query}"
    absent = {label for series in server.series(query) for label in legend if label not in series["metric"]}
    return f"no {sorted(absent)} in a result of {query}" if absent or not legend else ""


def test_every_selector_of_a_query_finds_series(watched: Watched) -> None:
    """Each by itself: `or`, `unless` and `and` would hide one that finds nothing."""
    queries = [filled(target["expr"]) for target in TARGETS.values()]
    queries += [rule["expr"] for rule in ALERTS.values()] + list(RECORDED.values())
    queries += [filled(selector) for name in NAMES for selector in variables(name).values()]
    wanted = {selector for query in queries for selector in selectors(query)}
    assert {selector for selector in wanted if not watched.prometheus.series(selector)} == set()


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_series_has_the_labels_of_its_name(watched: Watched, name: str) -> None:
    labels = {frozenset(series["metric"]) - {"__name__"} for series in watched.prometheus.series(name)}
    assert labels == {known()[name]}


def test_every_metric_of_the_list_arrives(watched: Watched) -> None:
    names = set(watched.prometheus.ask("label/__name__/values"))
    assert set(all_exported()) - names == set()


@pytest.mark.parametrize("worker", WORKERS)
def test_promtool_finds_nothing_wrong_with_a_running_worker(watched: Watched, worker: str, promtool: str) -> None:
    with urlopen(f"{watched.addresses[worker]}/metrics", timeout=10) as page:
        checked = subprocess.run([promtool, "check", "metrics"], input=page.read(), capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_rules_are_evaluated_without_errors(watched: Watched) -> None:
    assert watched.prometheus.broken_rules() == {}


def test_all_workers_are_ready_and_one_learner_is_active(watched: Watched) -> None:
    soon("all ready", lambda: watched.prometheus.query("sum(stream_worker:cgzsl_ready:sum)") == [len(WORKERS)])
    assert watched.prometheus.query("stream:cgzsl_learner_active:sum") == [1]


def test_only_the_right_alert_fires_when_the_learners_are_gone(watched: Watched) -> None:
    """Must be the last test here: it ends the learners."""
    assert watched.prometheus.firing() == set()
    together.end([watched.processes["learner"], watched.processes["standby"]])
    soon("an alert", lambda: watched.prometheus.firing() != set())
    assert watched.prometheus.firing() == {"LearnerDown"}
    (alert,) = [a for a in watched.prometheus.ask("alerts")["alerts"] if a["state"] == "firing"]
    assert alert["labels"] == {"alertname": "LearnerDown", "severity": "critical", "stream": STREAM}
    assert alert["annotations"]["summary"] == f"No learner is active on stream {STREAM}"
