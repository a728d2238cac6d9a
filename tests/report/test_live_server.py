"""The live page's server: whom it answers, with what, and how it ends."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse

import pytest
from listening import Listener, listening
from patience import PATIENCE_SECONDS

from stream_cgzsl.errors import UsageError
from stream_cgzsl.report.live import server as live_server
from stream_cgzsl.report.live.parts import Parts
from stream_cgzsl.report.live.server import LiveServer


@pytest.fixture
def parts() -> Parts:
    made = Parts()
    made.put(status={"state": "following", "problem": None})
    return made


@pytest.fixture
def server(parts: Parts) -> Iterator[LiveServer]:
    with closing(LiveServer("127.0.0.1", 0, parts)) as opened:
        yield opened


def ask(
    server: LiveServer, path: str = "/", method: str = "GET", host: str | None = None
) -> tuple[HTTPResponse, bytes]:
    port = int(server.url.rstrip("/").rpartition(":")[2])
    with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.putrequest(method, path, skip_host=True)
        if host != "":
            connection.putheader("Host", host or f"localhost:{port}")
        connection.endheaders()
        answer = connection.getresponse()
        return answer, answer.read()


@pytest.mark.parametrize(
    ("path", "kind", "begins"),
    [
        ("/", "text/html; charset=utf-8", b"<!doctype html>"),
        ("/?anything", "text/html; charset=utf-8", b"<!doctype html>"),
        ("/style.css", "text/css; charset=utf-8", b"/*"),
        ("/live.css", "text/css; charset=utf-8", b"/*"),
        ("/page.js", "text/javascript; charset=utf-8", b"//"),
        ("/live.js", "text/javascript; charset=utf-8", b"//"),
        ("/view.js", "text/javascript; charset=utf-8", b"//"),
    ],
)
def test_files_have_their_type_and_every_guard(server: LiveServer, path: str, kind: str, begins: bytes) -> None:
    answer, body = ask(server, path)
    assert (answer.status, answer.headers["Content-Type"], body.startswith(begins)) == (200, kind, True)
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("path", ["/nothing", "/../../etc/passwd", "/metrics"])
def test_there_is_nothing_else(server: LiveServer, path: str) -> None:
    assert ask(server, path)[0].status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_it_is_read_only(server: LiveServer, method: str) -> None:
    answer, _ = ask(server, "/", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:1234", 200),  # a tunnel has another port
        ("LOCALHOST", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("evil.example:8050", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:80", 421),
        ("", 421),
    ],
)
@pytest.mark.parametrize("path", ["/", "/live.js"])
def test_only_the_names_of_this_machine_are_answered_to(server: LiveServer, host: str, status: int, path: str) -> None:
    assert ask(server, path, host=host)[0].status == status


def test_the_events_have_the_same_guards_as_the_page(server: LiveServer) -> None:
    assert ask(server, "/events", host="evil.example")[0].status == 421


def test_a_public_address_answers_to_every_name(parts: Parts) -> None:
    with closing(LiveServer("0.0.0.0", 0, parts)) as opened:
        assert ask(opened, "/", host="stream.example")[0].status == 200


def test_a_taken_port_is_one_clear_sentence(server: LiveServer, parts: Parts) -> None:
    port = int(server.url.rstrip("/").rpartition(":")[2])
    with pytest.raises(
        UsageError, match=rf"^cannot serve the page on 127.0.0.1:{port}: .*; choose another --host or --port$"
    ):
        LiveServer("127.0.0.1", port, parts)


def test_events_have_everything_first_and_then_the_changes(server: LiveServer, parts: Parts) -> None:
    with listening(server.url) as listener:
        listener.until(lambda parts: parts.get("status", {}).get("state") == "following")
        parts.put(lag={"features": 3}, status={"state": "following", "problem": None})
        assert listener.until(lambda parts: "lag" in parts)["lag"] == {"features": 3}


def test_events_never_break_out_of_their_line(server: LiveServer, parts: Parts) -> None:
    hostile = "a\n\nevent: status\ndata: {}\n\n\r\u2028</script>"
    with listening(server.url) as listener:
        parts.put(letters=[hostile])
        assert listener.until(lambda parts: "letters" in parts)["letters"] == [hostile]
        assert listener.parts["status"]["state"] == "following"


def test_an_idle_connection_gets_beats(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_server, "BEAT_SECONDS", 0.05)
    with closing(LiveServer("127.0.0.1", 0, parts)) as opened, listening(opened.url) as listener:
        listener.until(lambda parts: "beat" in parts)


def test_no_more_browsers_than_threads_can_be_spared(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_server, "_BROWSERS", 1)
    with closing(LiveServer("127.0.0.1", 0, parts)) as opened, listening(opened.url) as listener:
        listener.until(lambda parts: "status" in parts)
        assert ask(opened, "/events")[0].status == 503
        assert ask(opened, "/")[0].status == 200


def test_a_browser_that_went_away_makes_room(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_server, "_BROWSERS", 1)
    monkeypatch.setattr(live_server, "BEAT_SECONDS", 0.05)
    with closing(LiveServer("127.0.0.1", 0, parts)) as opened:
        with listening(opened.url) as listener:
            listener.until(lambda parts: "status" in parts)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                Listener(opened.url).close()
                break
            except AssertionError as full:
                assert str(full) == "503" and time.monotonic() < deadline
                time.sleep(0.05)


def test_closing_ends_open_streams_and_frees_the_port(parts: Parts) -> None:
    opened = LiveServer("127.0.0.1", 0, parts)
    port = int(opened.url.rstrip("/").rpartition(":")[2])
    with listening(opened.url) as listener:
        listener.until(lambda parts: "status" in parts)
        opened.close()
        with pytest.raises(AssertionError, match="the server has ended the stream"):
            listener.until(lambda _: False)
    with closing(LiveServer("127.0.0.1", port, Parts())), closing(socket.create_connection(("127.0.0.1", port), 5)):
        pass


def test_unchanged_parts_wake_nobody() -> None:
    parts = Parts()
    parts.put(a=1, b=2)
    assert parts.wait(0, 0) == (1, {"a": "1", "b": "2"})
    parts.put(a=1, b=3)
    assert parts.wait(1, 0) == (2, {"b": "3"})
    parts.put(a=1, b=3)
    assert parts.wait(2, 0) == (2, {})
    parts.close()
    assert parts.wait(0, 60) is None
