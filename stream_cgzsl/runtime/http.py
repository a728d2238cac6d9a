"""Pages over HTTP that can only be read: what the workers' pages and the live page have in common.

On a loopback address, requests for other host names are refused: this stops DNS rebinding, where a foreign page gives
its own name the address 127.0.0.1. A client that is slow, malformed or gone costs one of a limited number of threads
for a few seconds, never the process.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any
from urllib.parse import urlsplit

from stream_cgzsl.errors import UsageError

log = logging.getLogger(__name__)

CONNECTIONS = 128
"""How many are served at once; more are closed unanswered."""

TEXT = "text/plain; charset=utf-8"


class PageHandler(BaseHTTPRequestHandler):
    """Answers GET with `page`. Everything else gets an error in one line of text, which never quotes the request."""

    server_version = "stream-cgzsl"
    sys_version = ""  # do not reveal the Python version
    timeout = 10.0  # seconds of each read and write
    allow = "GET"
    server: _Server

    def page(self, path: str) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        names = self.server.names
        if names is not None and _name(self.headers.get("Host", "")) not in names:
            self.answer(HTTPStatus.MISDIRECTED_REQUEST, b"this is served to this machine only: ask for localhost\n")
        else:
            self.page(urlsplit(self.path).path)

    def answer(self, status: HTTPStatus, body: bytes, kind: str = TEXT) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", self.allow)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Errors that the base class finds. It would answer in HTML and quote the request."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self.answer(HTTPStatus.METHOD_NOT_ALLOWED, f"this can only be read: {self.allow}\n".encode())
        else:
            self.answer(HTTPStatus(code), f"{HTTPStatus(code).phrase}\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        log.debug(format, *args)


class PageServer:
    """Serves pages from threads of its own until closed. `content` is what the handler finds as `server.content`."""

    def __init__(self, host: str, port: int, handler: type[PageHandler], content: Any, what: str) -> None:
        try:
            self._server = _Server(host, port, handler, content)
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"cannot serve {what} on {host}:{port}: {error}; choose another --host or --port"
            ) from error
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="pages", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingTCPServer):
    """Not `http.server`'s own class, which does a DNS lookup before it serves."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, host: str, port: int, handler: type[PageHandler], content: Any) -> None:
        self.content = content
        self.names = {"localhost", "127.0.0.1", "[::1]", host.lower()} if is_loopback(host) else None
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._free = threading.Semaphore(CONNECTIONS)
        super().__init__((host, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            log.debug("%s is one connection too many", client_address)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """A client that disconnects early is normal; anything else is a bug."""
        error = sys.exception()
        if isinstance(error, OSError):
            log.debug("%s did not take its answer: %r", client_address, error)
        else:
            log.error("a page could not be answered: %r", error, exc_info=error)


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
