"""The HTTP pages of a worker: /metrics for Prometheus, /healthz (alive) and /readyz (ready).

They are meant for monitoring on an internal network: there is no authentication, and nothing can be changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from stream_cgzsl.runtime.http import PageHandler, PageServer

log = logging.getLogger(__name__)

Ready = Callable[[], str | None]
"""None, or why the worker is not ready yet."""


class _Handler(PageHandler):
    allow = "GET, HEAD"
    do_HEAD = PageHandler.do_GET

    def page(self, path: str) -> None:
        registry, ready = self.server.content
        if path == "/metrics":
            self.answer(HTTPStatus.OK, generate_latest(registry), CONTENT_TYPE_LATEST)
        elif path == "/healthz":
            self.answer(HTTPStatus.OK, b"alive\n")
        elif path == "/readyz":
            why_not = ready()
            status = HTTPStatus.OK if why_not is None else HTTPStatus.SERVICE_UNAVAILABLE
            self.answer(status, f"{why_not or 'ready'}\n".encode())
        else:
            self.answer(HTTPStatus.NOT_FOUND, b"the pages are /metrics, /healthz and /readyz\n")


class Pages(PageServer):
    def __init__(self, host: str, port: int, registry: CollectorRegistry, ready: Ready) -> None:
        super().__init__(host, port, _Handler, (registry, ready), "/metrics")
        log.info("metrics at %s/metrics", self.url)
