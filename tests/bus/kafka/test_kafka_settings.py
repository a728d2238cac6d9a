"""Kafka settings from a `kafka://` URL and the environment."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.errors import UsageError


def parse(url: str, **environment: str) -> KafkaSettings:
    return KafkaSettings.parse(url, {f"CGZSL_KAFKA_{name.upper()}": value for name, value in environment.items()})


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("kafka://localhost", ("localhost:9092",)),
        ("kafka://a:1,b,c:3", ("a:1", "b:9092", "c:3")),
        ("kafka://[::1]:9093", ("[::1]:9093",)),
        ("kafka://[::1]", ("[::1]:9092",)),
        ("kafka://a:1/", ("a:1",)),
    ],
)
def test_addresses(url: str, hosts: tuple[str, ...]) -> None:
    settings = parse(url)
    assert settings.hosts == hosts
    assert settings.consumer()["bootstrap_servers"] == list(hosts)


def test_without_options_nothing_is_encrypted() -> None:
    settings = parse("kafka://a:1")
    assert (settings.url, settings.security) == ("kafka://a:1", "PLAINTEXT")


def test_a_user_means_a_password_over_tls() -> None:
    admin = parse("kafka://al%40ice:s%2Fcret@a:1").admin()
    assert {name: admin[name] for name in admin if name.startswith(("sasl", "security"))} == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "al@ice",
        "sasl_plain_password": "s/cret",
    }
    assert admin["ssl_context"].verify_mode == ssl.CERT_REQUIRED
    assert admin["ssl_context"].check_hostname


def test_the_url_takes_precedence_over_the_environment() -> None:
    settings = parse("kafka://bob@a:1?mechanism=PLAIN", user="alice", password="p", mechanism="SCRAM-SHA-256")
    admin = settings.admin()
    assert (admin["sasl_plain_username"], admin["sasl_plain_password"], admin["sasl_mechanism"]) == (
        "bob",
        "p",
        "PLAIN",
    )
    assert settings.url == "kafka://bob@a:1?mechanism=PLAIN"


def test_nothing_printable_contains_a_secret() -> None:
    settings = parse("kafka://alice:s3cret@a:1?security=SASL_PLAINTEXT", key_password="s3cret")
    assert settings.url == "kafka://alice@a:1?security=SASL_PLAINTEXT"
    for shown in (settings, settings.admin(), settings.consumer(), settings.member("g"), settings.publisher("p")):
        assert "s3cret" not in repr(shown)


def test_each_member_has_its_own_assignor() -> None:
    settings = parse("kafka://a:1?session_timeout_ms=6000")
    first, second = settings.member("g"), settings.member("g")
    assert first["partition_assignment_strategy"][0] is not second["partition_assignment_strategy"][0]
    assert (first["group_id"], first["session_timeout_ms"], first["heartbeat_interval_ms"]) == ("g", 6000, 1000)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("kafka://", "not an address"),
        ("kafka://a:port", "not an address"),
        ("kafka://a:1/topic", "no path"),
        ("kafka://a:1?securty=SSL", "unknown option securty"),
        ("kafka://a:1?security=TLS", "SASL_PLAINTEXT"),
        ("kafka://alice:p@a:1?security=SSL", "SASL_SSL"),
        ("kafka://alice:p@a:1?mechanism=GSSAPI", "SCRAM-SHA-512"),
        ("kafka://alice@a:1", "CGZSL_KAFKA_PASSWORD"),
        ("kafka://a:1?security=SASL_SSL", "CGZSL_KAFKA_USER"),
        ("kafka://a:1?ca=/not/there.pem", "/not/there.pem"),
        ("kafka://a:1?session_timeout_ms=soon", "session_timeout_ms"),
    ],
)
def test_invalid_settings_are_rejected_without_connecting(url: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(url)


def test_a_file_that_is_not_a_certificate(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("hello")
    with pytest.raises(UsageError, match="PEM"):
        parse(f"kafka://a:1?ca={path}")


def test_secrets_stay_out_of_usage_errors() -> None:
    with pytest.raises(UsageError) as raised:
        parse("kafka://alice:s3cret@a:port")
    assert "s3cret" not in str(raised.value)
