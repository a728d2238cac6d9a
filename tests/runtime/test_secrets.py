"""Where passwords come from, and that they are never printed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from own_broker import PASSWORDS, OwnBroker
from patience import PATIENCE_SECONDS, until

from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.cli import main
from stream_cgzsl.errors import UsageError
from stream_cgzsl.runtime.secrets import MAX_SECRET_BYTES, from_environment, without_password

SECRET = "s3cret/of:alice"
QUOTED = "s3cret%2Fof%3Aalice"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    return path


def test_a_secret_is_read_from_a_file(file: Path) -> None:
    assert from_environment("PASSWORD", {"PASSWORD_FILE": str(file)}) == SECRET
    assert repr(from_environment("PASSWORD", {"PASSWORD_FILE": str(file)})) == "'***'"


def test_a_secret_is_read_from_a_variable() -> None:
    assert from_environment("PASSWORD", {"PASSWORD": SECRET}) == SECRET
    assert from_environment("PASSWORD", {"PASSWORD": "", "PASSWORD_FILE": ""}) is None


@pytest.mark.parametrize("content", [b"", b"\n", b"one\ntwo\n", b"x" * (MAX_SECRET_BYTES + 1), b"\xff\xfe"])
def test_a_file_without_exactly_one_line_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(UsageError, match=f"^PASSWORD_FILE={file}: "):
        from_environment("PASSWORD", {"PASSWORD_FILE": str(file)})


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        from_environment("PASSWORD", {"PASSWORD_FILE": str(tmp_path / "none")})


def test_a_file_and_a_variable_together_are_refused(file: Path) -> None:
    with pytest.raises(UsageError, match="set only one of them"):
        from_environment("PASSWORD", {"PASSWORD_FILE": str(file), "PASSWORD": SECRET})


def test_a_kafka_password_may_be_in_a_file(file: Path) -> None:
    environment = {"CGZSL_KAFKA_PASSWORD_FILE": str(file), "CGZSL_KAFKA_USER": "alice"}
    assert KafkaSettings.parse("kafka://a:1", environment).admin()["sasl_plain_password"] == SECRET
    from_url = KafkaSettings.parse("kafka://alice:of-the-url@a:1", environment)
    assert from_url.admin()["sasl_plain_password"] == "of-the-url"


def test_the_password_of_a_private_key_may_be_in_a_file(own_broker: OwnBroker, file: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked.key"
    subprocess.run(
        [
            "openssl",
            "rsa",
            "-aes256",
            "-passout",
            f"file:{file}",
            "-in",
            own_broker.file("client.key"),
            "-out",
            str(locked),
        ],
        check=True,
        capture_output=True,
    )
    url = f"kafka://a:1?ca={own_broker.file('ca.crt')}&cert={own_broker.file('client.crt')}&key={locked}"
    KafkaSettings.parse(url, {"CGZSL_KAFKA_KEY_PASSWORD_FILE": str(file)})
    with pytest.raises(UsageError, match="cannot use the certificate files"):
        KafkaSettings.parse(url, {"CGZSL_KAFKA_KEY_PASSWORD": "another"})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"kafka://alice:{QUOTED}@a:1,b:2?security=SSL", "kafka://alice@a:1,b:2?security=SSL"),
        ("kafka://alice:p@ss:word@a:1", "kafka://alice@a:1"),
        ("kafka://alice@a:1", "kafka://alice@a:1"),
        ("kafka://a:1", "kafka://a:1"),
        ("sqlite:////tmp/a:b@c.db", "sqlite:////tmp/a:b@c.db"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize(
    "command",
    [
        "learn --bus kafka://alice:{}@a:port",
        "learn --bus kafka://alice:{}@a:1?securty=SSL",
        "learn --bus kafka://alice:{}@a:1/path",
        "learn --bus kafka://alice:{}@a:1?ca=/not/there",
        "score --bus kafka://alice:{}@a:1?security=SSL",
        "score --bus kafke://alice:{}@a:1",
        "score --bus kafka://alice:{}@a:1?mechanism=NONE",
        "up --bus kafka://alice:{}@127.0.0.1:1?patience_ms=1000&security=SASL_PLAINTEXT",
        "topics show --bus kafka://alice:{}@127.0.0.1:1?patience_ms=1000",
        "topics acls --bus sqlit://alice:{}@a:1",
        "copy kafka://alice:{}@127.0.0.1:1?patience_ms=1000 sqlite:///x.db",
        "demo --bus kafka://alice:{}@127.0.0.1:1?patience_ms=1000",
    ],
)
def test_a_failing_command_does_not_print_the_password(
    command: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.format(QUOTED).split()) in (2, 3)
    shown = capfd.readouterr()
    assert "stream-cgzsl: " in shown.err
    assert "s3cret" not in shown.out + shown.err


def test_workers_do_not_log_the_password_even_at_debug_level(own_broker: OwnBroker, tmp_path: Path) -> None:
    """Through TLS, with a password from a file: the topics are created, and all workers start and stop."""
    secret = tmp_path / "password"
    secret.write_text(PASSWORDS["alice"])
    environment = {
        **os.environ,
        "CGZSL_BUS": f"kafka://{own_broker.sasl_ssl}",
        "CGZSL_PREFIX": "secretive",
        "CGZSL_LOG_LEVEL": "debug",
        "CGZSL_KAFKA_USER": "alice",
        "CGZSL_KAFKA_PASSWORD_FILE": str(secret),
        "CGZSL_KAFKA_CA": own_broker.file("ca.crt"),
    }
    log = tmp_path / "log"
    with log.open("wb") as output:
        up = subprocess.Popen(
            [sys.executable, "-m", "stream_cgzsl", "up", "--attributes", "4", "--features", "8"],
            env=environment,
            stdout=output,
            stderr=output,
        )
        try:
            until(lambda: b"waiting for events" in log.read_bytes(), "the learner's start")
        finally:
            up.send_signal(signal.SIGTERM)
            up.wait(PATIENCE_SECONDS)
    assert b"alice@" not in log.read_bytes()  # the user came from the environment, and so did the password
    assert PASSWORDS["alice"].encode() not in log.read_bytes()
    assert b"Traceback" not in log.read_bytes()
