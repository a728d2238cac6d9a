"""The live page over HTTP: its files, and its state as server-sent events. Read-only.

On a loopback address, requests for other host names are refused: this stops DNS rebinding, where a foreign page gives
its own name the address 127.0.0.1. No other origin may read, and only GET is allowed.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import urlsplit

from stream_cgzsl.errors import UsageError
from stream_cgzsl.report.live.page import FILES
from stream_cgzsl.report.live.parts import Parts

log = logging.getLogger(__name__)

BEAT_SECONDS = 10.0
"""A browser that hears nothing for several beats considers the connection dead."""

_BROWSERS = 64
_SILENCE_SECONDS = 30.0  # after which an idle connection is closed

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class LiveServer:
    """Serves in background threads until closed."""

    def __init__(self, host: str, port: int, parts: Parts) -> None:
        names = {"localhost", "127.0.0.1", "[::1]", host.lower()} if is_loopback(host) else None
        handler = type("Handler", (_Handler,), {"parts": parts, "names": names, "free": threading.Semaphore(_BROWSERS)})
        try:
            self._server = _Server(host, port, handler)
        except OSError as error:
            raise UsageError(
                f"cannot serve the page on {host}:{port}: {error}; choose another --host or --port"
            ) from error
        self._parts = parts
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, name="live", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends all event streams and frees the port."""
        self._parts.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        super().__init__((host, port), handler)


class _Handler(BaseHTTPRequestHandler):
    parts: ClassVar[Parts]
    names: ClassVar[set[str] | None]
    free: ClassVar[threading.Semaphore]
    timeout = _SILENCE_SECONDS
    server_version = "stream-cgzsl"
    sys_version = ""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if self.names is not None and _name(self.headers.get("Host", "")) not in self.names:
            self.answer(421, b"this page is served to this machine only: open it as localhost\n")
        elif path == "/events":
            self.events()
        elif path in FILES:
            kind, body = FILES[path]
            self.answer(200, body, kind)
        else:
            self.answer(404, b"the page is /\n")

    def refuse(self) -> None:
        self.answer(405, b"this page is read-only\n", allow="GET")

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = refuse

    def answer(
        self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8", allow: str | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if allow is not None:
            self.send_header("Allow", allow)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def end_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def events(self) -> None:
        """All parts of the state, then each one when it changes, until the browser or the server closes."""
        if not self.free.acquire(blocking=False):
            self.answer(503, b"too many browsers are connected\n")
            return
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.end_headers()
            self.wfile.write(b"retry: 2000\n\n")
            version = 0
            while (news := self.parts.wait(version, BEAT_SECONDS)) is not None:
                version, changed = news
                for name, text in (changed or {"beat": "null"}).items():
                    self.wfile.write(f"event: {name}\ndata: {text}\n\n".encode())
        except OSError as reason:
            log.debug("a browser disconnected: %s", reason)
        finally:
            self.free.release()

    def log_message(self, format: str, *args: object) -> None:
        log.debug(format, *args)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _name(header: str) -> str:
    """The name in a Host header, without its port, which differs behind a tunnel."""
    name, colon, port = header.rpartition(":")
    return (name if colon and port.isdecimal() else header).lower()
