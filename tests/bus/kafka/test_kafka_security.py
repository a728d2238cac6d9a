"""Connecting to a cluster that requires a login or TLS, and the errors when that fails."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from own_broker import PASSWORDS, OwnBroker

from stream_cgzsl.bus import Bus, TopicPartition, TopicSpec, connect
from stream_cgzsl.demo.broker import free_port
from stream_cgzsl.errors import BusUnavailable, Refused
from stream_cgzsl.schemas.message import Message

ALICE = f"alice:{quote(PASSWORDS['alice'])}"
QUICK = "patience_ms=2000"  # for connections that must fail
STARTING_SECONDS = 15  # for three processes that start at once on a busy machine


def round_trip(bus: Bus) -> bytes | None:
    """Uses every kind of client: creates, writes, publishes and reads."""
    topic = f"secure-{uuid.uuid4().hex[:12]}"
    bus.create([TopicSpec(topic)])
    with bus.writer() as writer, bus.publisher(topic) as publisher:
        writer.send(topic, Message(b"k", b"hel"))
        writer.flush()
        publisher.begin()
        publisher.send(topic, Message(b"k", b"lo"))
        publisher.commit(topic, {TopicPartition(topic, 0): 1})
    with bus.subscribe(topic, topic) as subscription, bus.reader({TopicPartition(topic, 0): 0}) as reader:
        said = b"".join(record.value or b"" for record in reader.poll(10.0))
        assert [record.value for record in subscription.poll(10.0)] == [b"lo"]
    return said


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password(own_broker: OwnBroker, mechanism: str) -> None:
    url = f"kafka://{ALICE}@{own_broker.sasl_plaintext}?security=SASL_PLAINTEXT&mechanism={mechanism}"
    with connect(url) as bus:
        assert round_trip(bus) == b"hello"


def test_a_password_over_tls(own_broker: OwnBroker) -> None:
    with connect(f"kafka://{ALICE}@{own_broker.sasl_ssl}?ca={own_broker.file('ca.crt')}") as bus:
        assert round_trip(bus) == b"hello"


def test_a_certificate(own_broker: OwnBroker) -> None:
    files = "&".join(
        f"{name}={own_broker.file(f)}" for name, f in (("ca", "ca.crt"), ("cert", "client.crt"), ("key", "client.key"))
    )
    with connect(f"kafka://{own_broker.ssl}?{files}") as bus:
        assert round_trip(bus) == b"hello"


def test_everything_from_the_environment(own_broker: OwnBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGZSL_KAFKA_USER", "alice")
    monkeypatch.setenv("CGZSL_KAFKA_PASSWORD", PASSWORDS["alice"])
    monkeypatch.setenv("CGZSL_KAFKA_CA", own_broker.file("ca.crt"))
    with connect(f"kafka://{own_broker.sasl_ssl}") as bus:
        assert round_trip(bus) == b"hello"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_reported_as_such(own_broker: OwnBroker, mechanism: str) -> None:
    url = f"kafka://alice:wr0ng@{own_broker.sasl_plaintext}?security=SASL_PLAINTEXT&mechanism={mechanism}&{QUICK}"
    with pytest.raises(Refused, match=r"does not let us in.*CGZSL_KAFKA_PASSWORD") as raised:
        connect(url)
    assert "wr0ng" not in str(raised.value)


def test_a_wrong_password_over_tls_is_reported_as_such(own_broker: OwnBroker) -> None:
    with pytest.raises(Refused, match=r"does not let us in.*CGZSL_KAFKA_PASSWORD"):
        connect(f"kafka://alice:wr0ng@{own_broker.sasl_ssl}?ca={own_broker.file('ca.crt')}&{QUICK}")


def test_an_untrusted_certificate_is_reported_as_such(own_broker: OwnBroker) -> None:
    with pytest.raises(BusUnavailable, match=r"certificate verify failed.*ca="):
        connect(f"kafka://{ALICE}@{own_broker.sasl_ssl}?{QUICK}")


def test_two_buses_in_one_process_each_report_their_own_failure(own_broker: OwnBroker) -> None:
    addresses = (own_broker.sasl_plaintext, f"127.0.0.1:{free_port()}")
    urls = [f"kafka://alice:wr0ng@{address}?security=SASL_PLAINTEXT&{QUICK}" for address in addresses]
    with ThreadPoolExecutor() as pool:
        wrong_password, no_broker = (future.exception() for future in [pool.submit(connect, url) for url in urls])
    assert isinstance(wrong_password, Refused) and "does not let us in" in str(wrong_password)
    assert isinstance(no_broker, BusUnavailable) and "ECONNREFUSED" in str(no_broker)


def test_commands_report_a_failed_login_in_one_line(own_broker: OwnBroker) -> None:
    """With the default patience, and all at once, because each takes most of that time."""
    trusting = f"kafka://alice@{own_broker.sasl_ssl}?ca={own_broker.file('ca.crt')}"
    cases = [
        (["learn"], trusting, "wr0ng-password", Refused.exit_code, "does not let us in"),
        (["topics", "show"], trusting, "wr0ng-password", Refused.exit_code, "does not let us in"),
        (
            ["score"],
            f"kafka://alice@{own_broker.sasl_ssl}",
            PASSWORDS["alice"],
            BusUnavailable.exit_code,
            "verify failed",
        ),
    ]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "stream_cgzsl", *command, "--bus", url, "--log-level", "debug"],
            env={**os.environ, "CGZSL_KAFKA_PASSWORD": password},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command, url, password, _, _ in cases
    ]
    try:
        for process, (_, url, password, code, said) in zip(running, cases, strict=True):
            out, error = process.communicate(timeout=15 + STARTING_SECONDS)
            assert process.returncode == code
            [line] = [line for line in error.splitlines() if line.startswith("stream-cgzsl:")]
            assert line.startswith(f"stream-cgzsl: {url}: ") and said in line
            assert password not in out + error and "Traceback" not in error
    finally:
        for process in running:
            process.kill()


def test_no_password_where_the_cluster_requires_one(own_broker: OwnBroker) -> None:
    with pytest.raises(BusUnavailable, match=r"may want TLS or a password"):
        connect(f"kafka://{own_broker.sasl_plaintext}?{QUICK}")


def test_tls_where_the_cluster_has_none(own_broker: OwnBroker) -> None:
    address = own_broker.broker.address
    with pytest.raises(BusUnavailable, match=f"{address}.*speaks no TLS"):
        connect(f"kafka://{address}?security=SSL&{QUICK}")


def test_a_user_without_rights_is_told_which_are_missing(own_broker: OwnBroker) -> None:
    topic = f"secret-{uuid.uuid4().hex[:12]}"
    with connect(own_broker.url) as anyone:
        anyone.create([TopicSpec(topic)])
    mallory = f"kafka://mallory:{PASSWORDS['mallory']}@{own_broker.sasl_plaintext}?security=SASL_PLAINTEXT"
    with connect(mallory) as bus:
        assert bus.topics() == {}
        for attempt, right in (
            (lambda: bus.end_offsets(topic), f"Describe on topic '{topic}'"),
            (lambda: bus.create([TopicSpec("mine")]), "Create on topic 'mine'"),
            (lambda: bus.reader({TopicPartition(topic, 0): 0}), f"Describe on topic '{topic}'"),
            (lambda: bus.subscribe(topic, "g"), f"Describe on topic '{topic}'"),
            (lambda: bus.lock("g", topic).acquire(1), f"Describe on topic '{topic}'"),
            (lambda: bus.writer().send(topic, Message(b"k", b"v")), f"Describe on topic '{topic}'"),
            (lambda: bus.publisher("p"), "Write on transactional-id 'p'"),
        ):
            with pytest.raises(Refused, match=f"^{re.escape(bus.url)}: this user has no {right};"):
                attempt()


def test_neither_logs_nor_the_url_contain_a_secret(own_broker: OwnBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="kafka")
    with connect(f"kafka://{ALICE}@{own_broker.sasl_plaintext}?security=SASL_PLAINTEXT") as bus:
        round_trip(bus)
        assert bus.url == f"kafka://alice@{own_broker.sasl_plaintext}?security=SASL_PLAINTEXT"
    assert "sasl_plain_username" in caplog.text
    assert PASSWORDS["alice"] not in caplog.text
