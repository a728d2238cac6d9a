"""What every test may ask for: a bus of either kind, and a real Kafka broker started only when the first test needs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stream_cgzsl.bus import Bus, broker, connect
from stream_cgzsl.errors import BusUnavailable

_no_broker = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def kafka_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker: the one `CGZSL_TEST_KAFKA` names, else one in Docker, else one from the released jars."""
    named = os.environ.get("CGZSL_TEST_KAFKA")
    if named:
        connect(named).close()
        yield named
        return
    reasons = ["CGZSL_TEST_KAFKA names no broker"]
    for begin in (_start_container, _start_jars):
        try:
            url, stop = begin(tmp_path_factory.mktemp("kafka"))
        except BusUnavailable as error:
            reasons.append(str(error))
            continue
        yield url
        stop()
        return
    reason = "; ".join(reasons)
    request.config.stash[_no_broker] = reason
    pytest.skip(f"no Kafka broker: {reason}")


def _start_container(directory: Path) -> tuple[str, Callable[[], None]]:  # noqa: ARG001 - Docker keeps the data
    from kafka_container import start_container  # slow to import, and needed by few runs

    return start_container()


def _start_jars(directory: Path) -> tuple[str, Callable[[], None]]:
    started = broker.start(directory, properties={"group.min.session.timeout.ms": "1000"})  # tests are in a hurry
    return started.url, started.stop


@pytest.fixture(params=["sqlite", pytest.param("kafka", marks=pytest.mark.kafka)])
def bus_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A bus of each kind in turn: a file of the test's own, the broker of the whole session."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'bus.db'}"
    url: str = request.getfixturevalue("kafka_url")
    return url


@pytest.fixture
def bus(bus_url: str) -> Iterator[Bus]:
    with connect(bus_url) as connected:
        yield connected


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"kafka_url", "own_broker"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kafka)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A machine that checks everything must not pass because it could check only half."""
    told = getattr(session.config, "workeroutput", None)  # one of several processes tells the one that started it
    if told is not None:
        told["no_broker"] = session.config.stash.get(_no_broker, "")
    elif _no_broker in session.config.stash and _in_ci() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    reason = getattr(node, "workeroutput", {}).get("no_broker")
    if reason:
        node.config.stash[_no_broker] = reason


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """The last words of a run that could not test Kafka."""
    reason = config.stash.get(_no_broker, None)
    if reason is not None and not hasattr(config, "workeroutput"):
        verdict = "which fails the run, because CI=true" if _in_ci() else "everything else was tested"
        print(f"The Kafka tests were SKIPPED, {verdict}. No broker could be had: {reason}")


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() == "true"
