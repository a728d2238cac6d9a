"""From a `kafka://` URL and the environment to the settings of the Kafka client.

`kafka://[user[:password]@]host[:port][,host[:port]...][?option=value&...]`. Every option, and `user` and `password`,
may also come from the environment as `CGZSL_KAFKA_<OPTION>`; the URL wins. Secrets belong in the environment, or in a
file that `CGZSL_KAFKA_PASSWORD_FILE` or `CGZSL_KAFKA_KEY_PASSWORD_FILE` names.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

from stream_cgzsl.bus.secrets import Secret, from_environment
from stream_cgzsl.errors import UsageError

OPTIONS = {
    "security": "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; SASL_SSL when there is a user, SSL when there is a ca or cert",
    "mechanism": "how the password is shown: SCRAM-SHA-512 (default), SCRAM-SHA-256 or PLAIN",
    "ca": "file with the certificates to trust, instead of the system's",
    "cert": "file with this client's certificate",
    "key": "file with the certificate's private key, where it is not in `cert`",
    "key_password": "the private key's password",
    "session_timeout_ms": "how long a silent member of a group keeps its partitions (default 15000)",
    "patience_ms": "how long to wait for a broker that went away, as one that restarts does (default 30000)",
}
_MILLISECONDS = {"session_timeout_ms": 15_000, "patience_ms": 30_000}
_SECURITY = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_SECRETS = ("password", "key_password")

MAX_RECORD_BYTES = 8 * 1024 * 1024
_TRANSACTION_SECONDS = 120
_CONNECT_MS = 8_000


@dataclass(frozen=True)
class KafkaSettings:
    """`url` is free of secrets. The methods give fresh keyword arguments for a client of kafka-python."""

    url: str
    hosts: tuple[str, ...]
    security: str
    session_timeout_ms: int
    patience_ms: int
    _connection: Mapping[str, Any]

    @classmethod
    def parse(cls, url: str, environment: Mapping[str, str] = os.environ) -> KafkaSettings:
        """Raises `UsageError` for anything that cannot work, before any connection is tried."""
        address, given = _take_apart(url)
        for name in sorted({*OPTIONS, "user", *_SECRETS} - set(given)):
            variable = f"CGZSL_KAFKA_{name.upper()}"
            value = from_environment(variable, environment) if name in _SECRETS else environment.get(variable)
            if value:
                given[name] = value
        shown = _without_secrets(address, given)
        hosts = _hosts(address, shown)
        security = _security(given, shown)
        return cls(
            url=shown,
            hosts=hosts,
            security=security,
            **_milliseconds(given, shown),
            _connection={
                "bootstrap_servers": list(hosts),
                "security_protocol": security,
                **_sasl(given, security, shown),
                **_tls(given, security, shown),
            },
        )

    @property
    def patience(self) -> float:
        """In seconds."""
        return self.patience_ms / 1000

    @property
    def connect_ms(self) -> int:
        """How long a first connection may take: a wrong address should be known sooner than a restart is over."""
        return min(_CONNECT_MS, self.patience_ms)

    def admin(self) -> dict[str, Any]:
        return {
            **self._connection,
            "client_id": "stream-cgzsl",
            "bootstrap_timeout_ms": self.connect_ms,
            "request_timeout_ms": self.patience_ms * 2 // 3,
            "reconnect_backoff_max_ms": 1000,
            "metadata_max_age_ms": self.patience_ms,  # new partitions are noticed so late at most
            "retry_backoff_ms": 50,
        }

    def consumer(self, waits: bool = True) -> dict[str, Any]:
        """Reads what is committed, from where it is told, and never jumps over what has expired.

        The client asks a broker for nothing else while it waits for an answer: one to a partition that is at its end
        must come soon if there are others to be read.
        """
        return {
            **self.admin(),
            "enable_auto_commit": False,
            "auto_offset_reset": "none",
            "isolation_level": "read_committed",
            "allow_auto_create_topics": False,
            "retry_backoff_ms": 10,  # also how long a poll sleeps while positions are looked up
            "fetch_max_wait_ms": 250 if waits else 10,
            "fetch_max_bytes": 64 * 1024 * 1024,
            "max_partition_fetch_bytes": MAX_RECORD_BYTES,
            "metrics_enabled": False,
        }

    def member(self, group: str) -> dict[str, Any]:
        """A consumer that shares a topic with the rest of its group and starts at the first record."""
        return {
            **self.consumer(),
            "group_id": group,
            "auto_offset_reset": "earliest",
            "partition_assignment_strategy": [CooperativeStickyAssignor()],
            "session_timeout_ms": self.session_timeout_ms,
            "heartbeat_interval_ms": min(1000, self.session_timeout_ms // 3),
        }

    def producer(self) -> dict[str, Any]:
        return {
            **self.admin(),
            "batch_size": 256 * 1024,
            "linger_ms": 5,
            "max_request_size": MAX_RECORD_BYTES,
            "max_block_ms": self.patience_ms,
            "delivery_timeout_ms": self.patience_ms,
            "allow_auto_create_topics": False,
            "metrics_enabled": False,
        }

    def publisher(self, name: str) -> dict[str, Any]:
        """A producer whose transactions belong to `name`."""
        return {**self.producer(), "transactional_id": name, "transaction_timeout_ms": _TRANSACTION_SECONDS * 1000}


def addresses(url: str) -> tuple[str, ...]:
    """The brokers a URL names, as `host:port`. Raises `UsageError`."""
    address, given = _take_apart(url)
    return _hosts(address, _without_secrets(address, given))


def _take_apart(url: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(url)
    user, _, address = parts.netloc.rpartition("@")
    given = dict(parse_qsl(parts.query))
    unknown = sorted(set(given) - set(OPTIONS))
    if unknown:
        known = "; ".join(f"{name}: {meaning}" for name, meaning in OPTIONS.items())
        raise UsageError(f"kafka://{address}: unknown option {', '.join(unknown)}. The options are: {known}")
    if parts.path.strip("/"):
        raise UsageError(f"kafka://{address}{parts.path}: a Kafka URL has no path; topics are named with --prefix")
    if user:
        name, _, password = user.partition(":")
        given["user"] = unquote(name)
        if password:
            given["password"] = unquote(password)
    return address, given


def _without_secrets(address: str, given: Mapping[str, str]) -> str:
    user = f"{quote(given['user'])}@" if "user" in given else ""
    shown = {name: value for name, value in given.items() if name != "user" and name not in _SECRETS}
    return f"kafka://{user}{address}" + (f"?{urlencode(shown, safe='/')}" if shown else "")


def _hosts(address: str, shown: str) -> tuple[str, ...]:
    hosts = []
    for part in address.split(","):
        host, colon, port = part.rpartition(":")
        if not colon or part.endswith("]"):
            host, port = part, "9092"
        if not host or not port.isdigit():
            raise UsageError(f"{shown}: {part!r} is no address; use kafka://host:port or kafka://host:port,host:port")
        hosts.append(f"{host}:{port}")
    return tuple(hosts)


def _security(given: Mapping[str, str], shown: str) -> str:
    default = "SASL_SSL" if "user" in given else "SSL" if {"ca", "cert"} & set(given) else "PLAINTEXT"
    security = given.get("security", default).upper()
    if security not in _SECURITY:
        raise UsageError(f"{shown}: security must be one of {', '.join(_SECURITY)}")
    if "user" in given and not security.startswith("SASL"):
        raise UsageError(f"{shown}: a user needs security=SASL_SSL (or SASL_PLAINTEXT on a network you trust)")
    return security


def _sasl(given: Mapping[str, str], security: str, shown: str) -> dict[str, Any]:
    if not security.startswith("SASL"):
        return {}
    mechanism = given.get("mechanism", "SCRAM-SHA-512").upper()
    if mechanism not in _MECHANISMS:
        raise UsageError(f"{shown}: mechanism must be one of {', '.join(_MECHANISMS)}")
    for name in ("user", "password"):
        if name not in given:
            also = " or CGZSL_KAFKA_PASSWORD_FILE" if name == "password" else ""
            raise UsageError(f"{shown}: {security} needs a {name}; set CGZSL_KAFKA_{name.upper()}{also}")
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": given["user"],
        "sasl_plain_password": Secret(given["password"]),
    }


def _tls(given: Mapping[str, str], security: str, shown: str) -> dict[str, Any]:
    if not security.endswith("SSL"):
        return {}
    for name in ("ca", "cert", "key"):
        if name in given and not Path(given[name]).is_file():
            raise UsageError(f"{shown}: the {name} file {given[name]!r} is not there")
    try:
        context = ssl.create_default_context(cafile=given.get("ca"))
        if "cert" in given:
            context.load_cert_chain(given["cert"], given.get("key"), given.get("key_password"))
    except ssl.SSLError as error:
        raise UsageError(f"{shown}: the certificate files cannot be used ({error}); they must be PEM files") from error
    return {"ssl_context": context}


def _milliseconds(given: Mapping[str, str], shown: str) -> dict[str, int]:
    found = dict(_MILLISECONDS)
    for name in set(_MILLISECONDS) & set(given):
        if not given[name].isdigit() or int(given[name]) < 1000:
            raise UsageError(f"{shown}: {name} must be a number of milliseconds, at least 1000")
        found[name] = int(given[name])
    return found
