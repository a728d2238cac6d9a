"""The HTTP pages of a worker, and clients that misbehave."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from patience import PATIENCE_SECONDS, until
from prometheus_client import CollectorRegistry, Gauge

from stream_cgzsl.errors import UsageError
from stream_cgzsl.runtime import http as pages_over_http
from stream_cgzsl.workers import http
from stream_cgzsl.workers.http import Pages


class Worker:
    """Its readiness is set by the test."""

    why_not: str | None = "no generation loaded yet"

    def why_not_ready(self) -> str | None:
        return self.why_not


@pytest.fixture(scope="module")
def serving() -> Iterator[tuple[Pages, Worker]]:
    worker, registry = Worker(), CollectorRegistry()
    Gauge("answer", "to everything", registry=registry).set(42)
    pages = Pages("127.0.0.1", 0, registry, worker.why_not_ready)
    yield pages, worker
    pages.close()


@pytest.fixture
def pages(serving: tuple[Pages, Worker]) -> Pages:
    return serving[0]


@pytest.fixture
def worker(serving: tuple[Pages, Worker]) -> Worker:
    serving[1].why_not = Worker.why_not
    return serving[1]


def ask(pages: Pages, method: str, path: str) -> tuple[int, str, dict[str, str]]:
    connection = HTTPConnection(urlsplit(pages.url).netloc, timeout=PATIENCE_SECONDS)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), {name.lower(): value for name, value in answer.getheaders()}


def raw(pages: Pages, sent: bytes) -> bytes:
    """Everything that comes back for these bytes, until the server hangs up."""
    where = urlsplit(pages.url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(sent)
        received = b""
        while part := connection.recv(65536):
            received += part
    return received


@pytest.mark.parametrize("path", ["/metrics", "/metrics?format=any"])
def test_metrics_are_in_the_text_format(pages: Pages, path: str) -> None:
    status, text, headers = ask(pages, "GET", path)
    assert (status, text) == (200, "# HELP answer to everything\n# TYPE answer gauge\nanswer 42.0\n")
    assert headers["content-type"].startswith("text/plain; version=")


def test_health_and_readiness(pages: Pages, worker: Worker) -> None:
    assert ask(pages, "GET", "/healthz")[:2] == (200, "alive\n")
    assert ask(pages, "GET", "/readyz")[:2] == (503, "no generation loaded yet\n")
    worker.why_not = None
    assert ask(pages, "GET", "/readyz")[:2] == (200, "ready\n")


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz", "/nowhere"])
def test_head_is_get_without_the_body(pages: Pages, path: str) -> None:
    status, text, headers = ask(pages, "GET", path)
    head_status, head_text, head_headers = ask(pages, "HEAD", path)
    assert (head_status, head_text) == (status, "")
    assert head_headers["content-length"] == headers["content-length"] == str(len(text))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "NONSENSE"])
def test_nothing_can_be_changed(pages: Pages, method: str) -> None:
    status, text, headers = ask(pages, method, "/metrics")
    assert (status, text, headers["allow"]) == (405, "this can only be read: GET, HEAD\n", "GET, HEAD")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"<script>\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET /metrics HTTP/9.9\r\n\r\n", HTTPStatus.HTTP_VERSION_NOT_SUPPORTED),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", HTTPStatus.REQUEST_URI_TOO_LONG),
        (b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 200 + b"\r\n", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    ],
    ids=["no request", "unknown version", "long address", "many headers"],
)
def test_an_invalid_request_gets_an_error_that_does_not_quote_it(pages: Pages, sent: bytes, status: HTTPStatus) -> None:
    assert raw(pages, sent).rpartition(b"\r\n")[2].decode() == f"{status.phrase}\n"


def test_a_client_that_sends_nothing_is_disconnected(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http._Handler, "timeout", 0.2)
    assert raw(pages, b"GET /metr") == b""  # the usual timeout is ten seconds


def test_a_slow_client_does_not_delay_others(pages: Pages) -> None:
    where = urlsplit(pages.url)
    with socket.create_connection((where.hostname or "", where.port or 0)) as connection:
        connection.sendall(b"GET /metr")
        assert ask(pages, "GET", "/healthz")[0] == 200


def test_a_client_that_disconnects_early_is_only_logged_for_debugging(
    pages: Pages, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    worker.why_not = "x" * 50_000_000  # more than any socket takes at once
    where = urlsplit(pages.url)
    with caplog.at_level(logging.DEBUG, pages_over_http.__name__):
        with socket.create_connection((where.hostname or "", where.port or 0)) as connection:
            connection.sendall(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")
            connection.recv(1)
        until(lambda: "did not take its answer" in caplog.text, "the log line")
    assert [r.levelname for r in caplog.records if "did not take its answer" in r.message] == ["DEBUG"]
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
def test_on_loopback_other_host_names_are_refused(pages: Pages, path: str) -> None:
    answer = raw(pages, f"GET {path} HTTP/1.0\r\nHost: evil.example\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.0 421 ") and b"answer 42" not in answer


def test_no_more_connections_than_threads_can_be_spared(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_over_http, "CONNECTIONS", 1)
    pages = Pages("127.0.0.1", 0, CollectorRegistry(), worker.why_not_ready)
    where = urlsplit(pages.url)
    with socket.create_connection((where.hostname or "", where.port or 0)) as slow:
        slow.sendall(b"GET /metr")
        until(lambda: raw(pages, b"") == b"", "the connection too many")  # closed, and no thread waits for it
    until(lambda: b"alive" in raw(pages, b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n"), "the next answer")
    pages.close()


def test_it_serves_ipv6_too(worker: Worker) -> None:
    try:
        pages = Pages("::1", 0, CollectorRegistry(), worker.why_not_ready)
    except UsageError as error:
        pytest.skip(f"no IPv6 here: {error}")
    assert pages.url.startswith("http://[::1]:")
    assert ask(pages, "GET", "/healthz")[:2] == (200, "alive\n")
    pages.close()


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70_000), ("203.0.113.1", 0)])
def test_an_address_that_cannot_be_served_is_reported(worker: Worker, host: str, port: int) -> None:
    with pytest.raises(
        UsageError, match=f"cannot serve /metrics on {host}:{port}: .*; choose another --host or --port"
    ):
        Pages(host, port, CollectorRegistry(), worker.why_not_ready)
