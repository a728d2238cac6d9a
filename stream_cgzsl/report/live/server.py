"""The live page over HTTP: its files, and its state as server-sent events. No other origin may read."""

from __future__ import annotations

import logging
import threading
from http import HTTPStatus

from stream_cgzsl.report.live.page import FILES
from stream_cgzsl.report.live.parts import Parts
from stream_cgzsl.runtime.http import PageHandler, PageServer

log = logging.getLogger(__name__)

BEAT_SECONDS = 10.0
"""A browser that hears nothing for several beats considers the connection dead."""

_BROWSERS = 64

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LiveServer(PageServer):
    def __init__(self, host: str, port: int, parts: Parts) -> None:
        super().__init__(host, port, _Handler, (parts, threading.Semaphore(_BROWSERS)), "the page")
        self.url += "/"
        self._parts = parts

    def close(self) -> None:
        """Ends all event streams and frees the port."""
        self._parts.close()
        super().close()


class _Handler(PageHandler):
    timeout = 30.0

    def page(self, path: str) -> None:
        if path == "/events":
            self.events(*self.server.content)
        elif path in FILES:
            kind, body = FILES[path]
            self.answer(HTTPStatus.OK, body, kind)
        else:
            self.answer(HTTPStatus.NOT_FOUND, b"the page is /\n")

    def end_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def events(self, parts: Parts, free: threading.Semaphore) -> None:
        """All parts of the state, then each one when it changes, until the browser or the server closes."""
        if not free.acquire(blocking=False):
            self.answer(HTTPStatus.SERVICE_UNAVAILABLE, b"too many browsers are connected\n")
            return
        try:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(b"retry: 2000\n\n")
            version = 0
            while (news := parts.wait(version, BEAT_SECONDS)) is not None:
                version, changed = news
                for name, text in (changed or {"beat": "null"}).items():
                    self.wfile.write(f"event: {name}\ndata: {text}\n\n".encode())
        except OSError as reason:
            log.debug("a browser disconnected: %s", reason)
        finally:
            free.release()
