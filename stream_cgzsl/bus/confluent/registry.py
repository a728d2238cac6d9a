"""A client of a schema registry: two requests, each answered once and then remembered.

The registry is named by `CGZSL_REGISTRY_URL`, with `CGZSL_REGISTRY_USER`, `CGZSL_REGISTRY_PASSWORD` (or `_FILE`) and
`CGZSL_REGISTRY_CA` where it asks for a login or has a certificate of its own.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import threading
import urllib.request
from collections.abc import Mapping
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit

from stream_cgzsl.errors import BusUnavailable, Refused, UsageError
from stream_cgzsl.runtime.secrets import from_environment

_TIMEOUT_SECONDS = 10.0
_MAX_BYTES = 4 * 1024 * 1024
_UNKNOWN = (40401, 40402, 40403)
"""A registry's own codes for a subject, a version and a schema that it does not have."""


class Reference(NamedTuple):
    """Another schema that a schema needs, and the name it has there."""

    name: str
    subject: str
    version: int


class Schema(NamedTuple):
    """`kind` is AVRO, PROTOBUF or JSON."""

    kind: str
    text: str
    references: tuple[Reference, ...]


class Registry:
    """Schemas never change under their id, so each is asked for once. For any number of threads."""

    def __init__(self, url: str, user: str | None = None, password: str | None = None, ca: str | None = None) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
            raise UsageError(
                "CGZSL_REGISTRY_URL is not of the form http://host:port or https://host:port; a login belongs in "
                "CGZSL_REGISTRY_USER and CGZSL_REGISTRY_PASSWORD_FILE"
            )
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json"}
        if user:
            login = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
            self._headers["Authorization"] = f"Basic {login}"
        try:
            context = ssl.create_default_context(cafile=ca or None)
        except OSError as error:
            raise UsageError(f"CGZSL_REGISTRY_CA={ca}: not a file of certificates: {error}") from error
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirects)
        self._known: dict[str, Schema] = {}
        self._lock = threading.Lock()

    def schema(self, id: int, form: str = "") -> Schema:
        """The schema with that id, for Protobuf in the form `serialized`.

        Raises `ValueError` where there is none, `BusUnavailable` while the registry does not answer, `Refused` where it
        does not accept our login.
        """
        return self._remembered(f"/schemas/ids/{id}", form, f"no schema {id}")

    def referenced(self, reference: Reference, form: str = "") -> Schema:
        """Another schema that one refers to; raises as `schema`."""
        subject, version = quote(reference.subject, safe=""), reference.version
        missing = f"no version {version} of {reference.subject!r}"
        return self._remembered(f"/subjects/{subject}/versions/{version}", form, missing)

    def _remembered(self, path: str, form: str, missing: str) -> Schema:
        path += f"?format={form}" if form else ""
        with self._lock:
            if path not in self._known:
                answer = self._get(path)
                if answer is None:
                    raise ValueError(f"the schema registry {self.url} has {missing}")
                self._known[path] = self._read(answer)
            return self._known[path]

    def _read(self, answer: Mapping[str, Any]) -> Schema:
        try:
            references = tuple(
                Reference(str(item["name"]), str(item["subject"]), int(item["version"]))
                for item in answer.get("references") or ()
            )
            return Schema(str(answer.get("schemaType") or "AVRO"), str(answer["schema"]), references)
        except (KeyError, TypeError, ValueError) as error:
            raise self._not_a_registry(error) from error

    def _get(self, path: str) -> Mapping[str, Any] | None:
        """The object at a path; None where the registry says that it has no such schema."""
        request = urllib.request.Request(self.url + path, headers=self._headers)
        try:
            with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as response:
                return self._object(response)
        except HTTPError as error:
            with error:
                self._judge(error)
            return None
        except ssl.SSLError as error:
            raise self._untrusted(error) from error
        except (URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise self._untrusted(reason) from error
            raise BusUnavailable(f"the schema registry {self.url} cannot be reached: {reason}") from error

    def _judge(self, error: HTTPError) -> None:
        """Raises what an answer that is not 200 means, unless it means that there is no such schema."""
        if error.code in (401, 403):
            raise Refused(
                f"the schema registry {self.url} does not accept our login ({error.code}): set CGZSL_REGISTRY_USER and "
                "CGZSL_REGISTRY_PASSWORD_FILE"
            ) from error
        if error.code == 404:
            if self._object(error).get("error_code") in _UNKNOWN:
                return
            raise self._not_a_registry("404")
        raise BusUnavailable(f"the schema registry {self.url} answered {error.code} {error.reason}") from error

    def _object(self, response: IO[bytes]) -> Mapping[str, Any]:
        try:
            data = response.read(_MAX_BYTES + 1)
        except (OSError, HTTPException) as error:
            raise BusUnavailable(f"the schema registry {self.url} broke off its answer: {error}") from error
        try:
            found = json.loads(data) if len(data) <= _MAX_BYTES else None
        except (ValueError, RecursionError) as error:
            raise self._not_a_registry(error) from error
        if not isinstance(found, dict):
            raise self._not_a_registry(f"{len(data):,} bytes that are not an object")
        return found

    def _not_a_registry(self, found: object) -> UsageError:
        return UsageError(f"{self.url} does not answer like a schema registry ({found}); is CGZSL_REGISTRY_URL right?")

    def _untrusted(self, error: Exception) -> Refused:
        return Refused(f"the certificate of the schema registry {self.url} is not trusted ({error}): CGZSL_REGISTRY_CA")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A login is never sent on to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


@cache
def registry() -> Registry:
    """The registry that the environment names. Raises `UsageError` where it names none."""
    url = os.environ.get("CGZSL_REGISTRY_URL")
    if not url:
        raise UsageError("these records need a schema registry: set CGZSL_REGISTRY_URL=http://host:port")
    ca = os.environ.get("CGZSL_REGISTRY_CA")
    if ca and not Path(ca).is_file():
        raise UsageError(f"CGZSL_REGISTRY_CA={ca}: there is no such file")
    user, password = os.environ.get("CGZSL_REGISTRY_USER"), from_environment("CGZSL_REGISTRY_PASSWORD")
    return Registry(url, user, password, ca)
