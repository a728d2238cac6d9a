"""The HTTP pages of a worker: /metrics for Prometheus, /healthz (alive) and /readyz (ready).

They are meant for monitoring on an internal network: there is no authentication, and nothing can be changed. A client
that is slow, malformed or gone costs one thread for a few seconds, never the worker.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from stream_cgzsl.errors import UsageError

log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 10.0
_TEXT = "text/plain; charset=utf-8"

Ready = Callable[[], str | None]
"""None, or why the worker is not ready yet."""


class _Handler(BaseHTTPRequestHandler):
    """GET and HEAD of the three pages; everything else gets an error in one line of text."""

    server_version = "stream-cgzsl"
    sys_version = ""  # do not reveal the Python version
    timeout = _PATIENCE_SECONDS  # of each read and write
    server: _Server

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self.answer(HTTPStatus.OK, generate_latest(self.server.registry), CONTENT_TYPE_LATEST)
        elif path == "/healthz":
            self.answer(HTTPStatus.OK, b"alive\n")
        elif path == "/readyz":
            why_not = self.server.ready()
            status = HTTPStatus.OK if why_not is None else HTTPStatus.SERVICE_UNAVAILABLE
            self.answer(status, f"{why_not or 'ready'}\n".encode())
        else:
            self.answer(HTTPStatus.NOT_FOUND, b"the pages are /metrics, /healthz and /readyz\n")

    do_HEAD = do_GET

    def answer(self, status: HTTPStatus, body: bytes, kind: str = _TEXT) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Errors that the base class finds. It would answer in HTML and quote the request."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self.answer(HTTPStatus.METHOD_NOT_ALLOWED, b"these pages can only be read: GET or HEAD\n")
        else:
            self.answer(HTTPStatus(code), f"{HTTPStatus(code).phrase}\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        log.debug(format, *args)


class _Server(ThreadingTCPServer):
    """Not `http.server`'s own class, which does a DNS lookup before it serves."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, host: str, port: int, registry: CollectorRegistry, ready: Ready) -> None:
        self.registry = registry
        self.ready = ready
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """A client that disconnects early is normal; anything else is a bug."""
        error = sys.exception()
        if isinstance(error, OSError):
            log.debug("%s did not take its answer: %r", client_address, error)
        else:
            log.error("a page could not be answered: %r", error, exc_info=error)


class Pages:
    """Serves from a thread of its own until closed."""

    def __init__(self, host: str, port: int, registry: CollectorRegistry, ready: Ready) -> None:
        try:
            self._server = _Server(host, port, registry, ready)
        except (OSError, OverflowError) as error:
            raise UsageError(f"cannot serve /metrics on {host}:{port}: {error}; choose another --port") from error
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="pages", daemon=True)
        self._thread.start()
        log.info("metrics at %s/metrics", self.url)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
