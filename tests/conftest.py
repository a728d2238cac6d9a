"""Fixtures for all tests: a bus of either kind, and a real Kafka broker, started when the first test needs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import own_cluster
import pytest
from hypothesis import settings
from own_broker import OwnBroker, running
from own_cluster import OwnCluster

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.demo import broker
from stream_cgzsl.errors import BusUnavailable

_no_broker = pytest.StashKey[str]()

settings.register_profile("tests", deadline=None)  # an example may take longer on a busy machine
settings.load_profile("tests")


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


@pytest.fixture(scope="session")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnBroker]:
    """A broker that the test may kill, with listeners that require a login."""
    try:
        broker.jars()
    except BusUnavailable as error:
        pytest.skip(f"this test needs a broker that it may kill and restart: {error}")
    if shutil.which("openssl") is None:
        pytest.skip("this test needs `openssl` to make certificates")
    with running(tmp_path_factory.mktemp("own-broker")) as started:
        yield started


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    """Three brokers that the test may kill or pause, and leaves running. They take ten seconds to start."""
    try:
        broker.jars()
    except BusUnavailable as error:
        pytest.skip(f"this test needs brokers that it may kill and restart: {error}")
    with own_cluster.running(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(params=["sqlite", pytest.param("kafka", marks=pytest.mark.kafka)])
def bus_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A bus of each kind in turn: the test's own file, then the broker of the session."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'bus.db'}"
    url: str = request.getfixturevalue("kafka_url")
    return url


@pytest.fixture
def bus(bus_url: str) -> Iterator[Bus]:
    with connect(bus_url) as connected:
        yield connected


_SLOW_FOLDERS = {"guarantees", "docs", "deploy", "demo"}
"""They start worker processes, browsers or servers, and take minutes: not part of `make test-fast`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if {"kafka_url", "own_broker", "cluster"} & fixtures:
            item.add_marker(pytest.mark.kafka)
        if {"browser", "cluster"} & fixtures or item.path.parent.name in _SLOW_FOLDERS:
            item.add_marker(pytest.mark.slow)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A machine that checks everything must not pass because it could check only half."""
    output = getattr(session.config, "workeroutput", None)  # from one of several processes to the one that started it
    if output is not None:
        output["no_broker"] = session.config.stash.get(_no_broker, "")
    elif _no_broker in session.config.stash and _in_ci() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    reason = getattr(node, "workeroutput", {}).get("no_broker")
    if reason:
        node.config.stash[_no_broker] = reason


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line of a run that could not test Kafka."""
    reason = config.stash.get(_no_broker, None)
    if reason is not None and not hasattr(config, "workeroutput"):
        verdict = "which fails the run, because CI=true" if _in_ci() else "everything else was tested"
        print(f"The Kafka tests were SKIPPED, {verdict}. No broker could be started: {reason}")


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() == "true"
