"""Which client a URL gets, and librdkafka's settings from ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.bus.librdkafka import choice, settings
from stream_cgzsl.errors import UsageError


def parse(url: str, **environment: str) -> KafkaSettings:
    return KafkaSettings.parse(url, {f"CGZSL_KAFKA_{name.upper()}": value for name, value in environment.items()})


@pytest.mark.parametrize(
    ("url", "environment", "wanted"),
    [
        ("kafka://a:1", {}, False),
        ("kafka://a:1?client=kafka-python", {"client": "librdkafka"}, False),
        ("kafka://a:1?client=librdkafka", {}, True),
        ("kafka://a:1", {"client": "librdkafka"}, True),
    ],
)
def test_the_client_is_the_one_asked_for(url: str, environment: dict[str, str], wanted: bool) -> None:
    assert choice.wants_librdkafka(parse(url, **environment)) == wanted


def test_an_unknown_client() -> None:
    with pytest.raises(UsageError, match="client must be one of kafka-python, librdkafka"):
        parse("kafka://a:1?client=java")


def test_a_client_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'stream-cgzsl\[fast\]'"):
        choice.wants_librdkafka(parse("kafka://a:1?client=librdkafka"))


def test_the_client_accepts_every_setting() -> None:
    found = parse("kafka://a:1,b:2?session_timeout_ms=400000&patience_ms=5000")
    Consumer(settings.consumer(found, waits=False)).close()
    Consumer(settings.member(found, "g")).close()
    Producer(settings.producer(found))
    member = settings.member(found, "g")
    assert (member["bootstrap.servers"], member["group.id"]) == ("a:1,b:2", "g")
    assert member["max.poll.interval.ms"] >= member["session.timeout.ms"] == 400_000
    assert settings.producer(found)["delivery.timeout.ms"] == 5000


def test_security(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("unused")
    found = settings.consumer(parse(f"kafka://al%40ice:s%2Fcret@a:1?key={key}", key_password="s3cret"))
    assert {name: found[name] for name in found if name.startswith(("sasl", "security", "ssl.key.p"))} == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "al@ice",
        "sasl.password": "s/cret",
        "ssl.key.password": "s3cret",
    }
    assert found["ssl.ca.location"]
    assert "cret'" not in repr(found)
