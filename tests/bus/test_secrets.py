"""Where passwords come from, and that nothing ever shows one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from own_broker import PASSWORDS, OwnBroker

from stream_cgzsl.bus.kafka_settings import KafkaSettings
from stream_cgzsl.bus.secrets import MAX_SECRET_BYTES, from_environment, without_password
from stream_cgzsl.cli import main
from stream_cgzsl.errors import UsageError

SECRET = "s3cret/of:alice"
QUOTED = "s3cret%2Fof%3Aalice"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    return path


def test_a_secret_from_a_file_as_containers_are_given_them(file: Path) -> None:
    assert from_environment("PASSWORD", {"PASSWORD_FILE": str(file)}) == SECRET
    assert repr(from_environment("PASSWORD", {"PASSWORD_FILE": str(file)})) == "'***'"


def test_a_secret_from_a_variable() -> None:
    assert from_environment("PASSWORD", {"PASSWORD": SECRET}) == SECRET
    assert from_environment("PASSWORD", {"PASSWORD": "", "PASSWORD_FILE": ""}) is None


@pytest.mark.parametrize("content", [b"", b"\n", b"one\ntwo\n", b"x" * (MAX_SECRET_BYTES + 1), b"\xff\xfe"])
def test_a_file_that_holds_no_secret(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(UsageError, match=f"^PASSWORD_FILE={file}: "):
        from_environment("PASSWORD", {"PASSWORD_FILE": str(file)})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        from_environment("PASSWORD", {"PASSWORD_FILE": str(tmp_path / "none")})


def test_both_ways_at_once_are_refused(file: Path) -> None:
    with pytest.raises(UsageError, match="set one of them"):
        from_environment("PASSWORD", {"PASSWORD_FILE": str(file), "PASSWORD": SECRET})


def test_kafka_passwords_may_stand_in_files(file: Path) -> None:
    environment = {"CGZSL_KAFKA_PASSWORD_FILE": str(file), "CGZSL_KAFKA_USER": "alice"}
    assert KafkaSettings.parse("kafka://a:1", environment).admin()["sasl_plain_password"] == SECRET
    from_url = KafkaSettings.parse("kafka://alice:of-the-url@a:1", environment)
    assert from_url.admin()["sasl_plain_password"] == "of-the-url"


def test_a_private_keys_password_may_stand_in_a_file(own_broker: OwnBroker, file: Path, tmp_path: Path) -> None:
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
    with pytest.raises(UsageError, match="cannot be used"):
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
def test_a_url_as_it_may_be_shown(url: str, shown: str) -> None:
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
def test_a_command_that_fails_does_not_show_the_password_it_was_given(
    command: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.format(QUOTED).split()) in (2, 3)
    shown = capfd.readouterr()
    assert "stream-cgzsl: " in shown.err
    assert not {SECRET, QUOTED, "s3cret"} & set(shown.out + shown.err) and "s3cret" not in shown.out + shown.err


def test_workers_at_work_do_not_show_the_password_even_when_they_tell_everything(
    own_broker: OwnBroker, tmp_path: Path
) -> None:
    """Through TLS with a password from a file: a stream is created, both workers run, are asked for their pages and end."""
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
            _wait_for(log, b"waiting for events")
        finally:
            up.send_signal(signal.SIGTERM)
            up.wait(30)
    assert b"alice@" not in log.read_bytes()  # the user came from the environment, and so did the password
    assert PASSWORDS["alice"].encode() not in log.read_bytes()
    assert b"Traceback" not in log.read_bytes()


def _wait_for(log: Path, words: bytes) -> None:
    deadline = time.monotonic() + 60
    while words not in log.read_bytes():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
