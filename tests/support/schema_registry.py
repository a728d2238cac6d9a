"""A schema registry for tests: the two requests that decoders make, over real HTTP on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import pytest

from stream_cgzsl.bus.confluent import registry


@dataclass
class SchemaRegistry:
    """`answers` are what it says at a path, with the status; `asked` are the paths it was asked for."""

    url: str
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)
    failing: int | None = None
    """A status that every request gets instead."""

    def add(
        self, id: int, schema: Any, kind: str | None = None, references: list[dict[str, Any]] | None = None
    ) -> None:
        self.answers[f"/schemas/ids/{id}"] = (200, _document(schema, kind, references))

    def add_subject(self, subject: str, schema: Any, kind: str | None = None) -> dict[str, Any]:
        """Returns the reference to it."""
        self.answers[f"/subjects/{subject}/versions/1"] = (200, _document(schema, kind, None))
        return {"name": subject, "subject": subject, "version": 1}


def _document(schema: Any, kind: str | None, references: list[dict[str, Any]] | None) -> dict[str, Any]:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    optional = {"schemaType": kind, "references": references}
    return {"schema": text, **{name: value for name, value in optional.items() if value is not None}}


@contextmanager
def running() -> Iterator[SchemaRegistry]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            served.logins.append(self.headers["Authorization"])
            unknown = (404, {"error_code": 40403, "message": "Schema not found"})
            status, content = served.answers.get(unquote(self.path.partition("?")[0]), unknown)
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(served.failing or status)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served = SchemaRegistry(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def schemas(monkeypatch: pytest.MonkeyPatch) -> Iterator[SchemaRegistry]:
    """A registry that the environment names."""
    with running() as served:
        for name in ("USER", "PASSWORD", "PASSWORD_FILE", "CA"):
            monkeypatch.delenv(f"CGZSL_REGISTRY_{name}", raising=False)
        monkeypatch.setenv("CGZSL_REGISTRY_URL", served.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        registry.registry.cache_clear()
        yield served
        registry.registry.cache_clear()


def framed(id: int, payload: bytes) -> bytes:
    return b"\0" + id.to_bytes(4, "big") + payload
