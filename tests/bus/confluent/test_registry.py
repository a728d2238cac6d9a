"""The client of a schema registry: what it asks, remembers and refuses, and what is only not there yet."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from schema_registry import SchemaRegistry

from stream_cgzsl.bus.confluent.registry import Reference, Registry, registry
from stream_cgzsl.errors import BusUnavailable, CgzslError, Refused, UsageError


def test_a_schema_is_asked_for_once(schemas: SchemaRegistry) -> None:
    schemas.add(7, '"string"')
    reference = schemas.add_subject("a/b", "syntax", "PROTOBUF")
    for _ in range(3):
        assert registry().schema(7) == ("AVRO", '"string"', ())
        assert registry().referenced(Reference(**reference)).kind == "PROTOBUF"
    assert schemas.asked == ["/schemas/ids/7", "/subjects/a%2Fb/versions/1"]
    assert schemas.logins == [None, None]


def test_an_unknown_schema_is_asked_for_again(schemas: SchemaRegistry) -> None:
    with pytest.raises(ValueError, match=f"the schema registry {schemas.url} has no schema 7"):
        registry().schema(7)
    schemas.add(7, '"string"')
    assert registry().schema(7).text == '"string"'


def test_the_login_comes_from_the_environment(
    schemas: SchemaRegistry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("pass:word\n")
    monkeypatch.setenv("CGZSL_REGISTRY_USER", "me")
    monkeypatch.setenv("CGZSL_REGISTRY_PASSWORD_FILE", str(tmp_path / "secret"))
    schemas.add(7, '"string"')
    registry().schema(7)
    assert schemas.logins == ["Basic bWU6cGFzczp3b3Jk"]


@pytest.mark.parametrize(
    ("status", "content", "error", "message"),
    [
        (500, {}, BusUnavailable, "answered 500"),
        (429, {}, BusUnavailable, "answered 429"),
        (302, {}, BusUnavailable, "answered 302"),
        (401, {}, Refused, "does not accept our login"),
        (404, {"error": "no such page"}, UsageError, "is CGZSL_REGISTRY_URL right"),
        (404, b"<html>", UsageError, "is CGZSL_REGISTRY_URL right"),
        (200, b"<html>", UsageError, "is CGZSL_REGISTRY_URL right"),
        (200, [], UsageError, "is CGZSL_REGISTRY_URL right"),
        (200, {"name": "x"}, UsageError, "is CGZSL_REGISTRY_URL right"),
        (200, b"[" * 100_000, UsageError, "is CGZSL_REGISTRY_URL right"),
    ],
)
def test_every_other_answer_is_no_fault_of_a_record(
    schemas: SchemaRegistry, status: int, content: object, error: type[CgzslError], message: str
) -> None:
    schemas.answers["/schemas/ids/7"] = (status, content)
    with pytest.raises(error, match=message):
        registry().schema(7)
    assert "/elsewhere" not in schemas.asked


def test_a_registry_that_is_not_there_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(BusUnavailable, match="cannot be reached"):
        Registry(f"http://127.0.0.1:{port}").schema(7)


@pytest.mark.parametrize("url", ["registry:8081", "file:///etc/passwd", "http://me:secret@host", "http://"])
def test_an_url_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(UsageError, match="not of the form http://host:port") as caught:
        Registry(url)
    assert "secret" not in str(caught.value)


def test_without_an_url_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CGZSL_REGISTRY_URL", raising=False)
    registry.cache_clear()
    with pytest.raises(UsageError, match="set CGZSL_REGISTRY_URL=http"):
        registry()
