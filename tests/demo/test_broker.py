"""Starting and stopping a broker, and a test run without one."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from stream_cgzsl.bus import TopicPartition, TopicSpec, connect
from stream_cgzsl.demo import broker, cluster
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.schemas.message import Message

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def jars() -> None:
    try:
        broker.jars()
    except BusUnavailable as error:
        pytest.skip(f"no broker can be started here: {error}")


@pytest.mark.kafka
@pytest.mark.usefixtures("jars")
def test_a_detached_broker_is_started_found_and_stopped_with_its_data_kept(tmp_path: Path) -> None:
    port = broker.free_port()
    assert broker.stop_detached(tmp_path) is False
    try:
        assert broker.start_detached(port, tmp_path) == f"127.0.0.1:{port}"
        assert broker.start_detached(0, tmp_path) == f"127.0.0.1:{port}"
        with connect(f"kafka://127.0.0.1:{port}") as bus:
            bus.create([TopicSpec("t")])
            with bus.writer() as writer:
                writer.send("t", Message(b"k", b"v"))
        assert stop_elsewhere(tmp_path) == "True\n"
        assert broker.stop_detached(tmp_path) is False
        with pytest.raises(BusUnavailable):
            connect(f"kafka://127.0.0.1:{port}?patience_ms=1000")
        address = broker.start_detached(0, tmp_path)
        with connect(f"kafka://{address}") as bus, bus.reader({TopicPartition("t", 0): 0}) as reader:
            assert [record.value for record in reader.poll(10.0)] == [b"v"]
    finally:
        broker.stop_detached(tmp_path)


@pytest.mark.kafka
@pytest.mark.usefixtures("jars")
def test_a_detached_cluster_is_found_and_stopped_and_needs_only_most_of_its_brokers(tmp_path: Path) -> None:
    try:
        addresses = cluster.start_detached(0, tmp_path, 3)
        assert cluster.start_detached(0, tmp_path, 3) == addresses
        with connect(f"kafka://{addresses}") as bus:
            bus.create([TopicSpec("t")])
            assert broker.stop_detached(tmp_path / "broker-2")
            with bus.writer() as writer:
                writer.send("t", Message(b"k", b"v"))
        assert cluster.stop_detached(tmp_path) is True
        assert cluster.stop_detached(tmp_path) is False
    finally:
        cluster.stop_detached(tmp_path)


def stop_elsewhere(directory: Path) -> str:
    """Stops it from another process, as a second command would."""
    script = f"import pathlib; from stream_cgzsl.demo import broker; print(broker.stop_detached(pathlib.{directory!r}))"
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.kafka
@pytest.mark.usefixtures("jars")
def test_a_broker_that_cannot_start_reports_why(tmp_path: Path) -> None:
    with pytest.raises(BusUnavailable, match=r"(?s)broker\.log.*no\.such\.Authorizer"):
        broker.start(tmp_path, properties={"authorizer.class.name": "no.such.Authorizer"})


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(BusUnavailable, match=f"^port {port} of 127.0.0.1 is in use by another program"):
            broker.start(tmp_path, port)


def test_without_java_the_advice_is_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BusUnavailable, match=r"no `java`.*needs Java 17"):
        broker.jars()


def test_an_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(BusUnavailable, match=r'version "11\.0\.2".*needs Java 17'):
        broker.jars()


def test_without_maven_the_advice_is_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    monkeypatch.setenv("CGZSL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BusUnavailable, match=r"no `mvn`"):
        broker.jars()


@pytest.mark.parametrize("processes", [0, 2])
@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 1)])
def test_a_test_run_without_a_broker_reports_the_reason(tmp_path: Path, ci: str, status: int, processes: int) -> None:
    """Without a named broker, Docker and Java, the Kafka tests are skipped; on a CI machine that fails the run."""
    ours = ("CGZSL_TEST_KAFKA", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment |= {"PATH": str(tmp_path), "CI": ci, "DOCKER_HOST": "tcp://127.0.0.1:1", "COLUMNS": "100"}
    test = "tests/contract/test_bus_topics.py::test_creating_nothing_is_no_error"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"-n{processes}", test],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    last = ran.stdout.splitlines()[-1]
    assert re.match(r"The Kafka tests were SKIPPED.*CGZSL_TEST_KAFKA.*Docker.*no `java`", last), ran.stdout
    assert (ran.returncode, "1 passed, 2 skipped" in ran.stdout) == (status, True)
