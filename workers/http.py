"""The pages of a worker: /metrics for Prometheus, /healthz (alive) and /readyz (of use)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from stream_cgzsl.errors import UsageError

log = logging.getLogger(__name__)


class Pages:
    """Serves from a thread of its own until closed. `ready` answers None, or why the worker is not ready yet."""

    def __init__(self, host: str, port: int, registry: CollectorRegistry, ready: Callable[[], str | None]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self.answer(200, generate_latest(registry), CONTENT_TYPE_LATEST)
                elif self.path == "/healthz":
                    self.answer(200, b"alive\n")
                elif self.path == "/readyz":
                    why_not = ready()
                    self.answer(200 if why_not is None else 503, f"{why_not or 'ready'}\n".encode())
                else:
                    self.answer(404, b"the pages are /metrics, /healthz and /readyz\n")

            def answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                log.debug(format, *args)

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise UsageError(f"cannot serve /metrics on {host}:{port}: {error}; choose another --port") from error
        self._server.daemon_threads = True
        self.url = f"http://{host}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="pages", daemon=True)
        self._thread.start()
        log.info("metrics at %s/metrics", self.url)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
