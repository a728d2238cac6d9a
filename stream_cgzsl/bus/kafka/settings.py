"""Makes the Kafka client's settings from a `kafka://` URL and the environment.

`kafka://[user[:password]@]host[:port][,host[:port]...][?option=value&...]`. The options, `user` and `password` can also
be set in the environment as `CGZSL_KAFKA_<OPTION>`; the URL takes precedence. Secrets belong in the environment, or in
a file named by `CGZSL_KAFKA_PASSWORD_FILE` or `CGZSL_KAFKA_KEY_PASSWORD_FILE`.
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

from stream_cgzsl.errors import UsageError
from stream_cgzsl.runtime.secrets import Secret, from_environment

OPTIONS = {
    "security": "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL (default with a user: SASL_SSL, with a ca or cert: SSL)",
    "mechanism": "SASL mechanism for the password: SCRAM-SHA-512 (default), SCRAM-SHA-256 or PLAIN",
    "ca": "file with the certificates to trust, instead of the system's",
    "cert": "file with this client's certificate",
    "key": "file with the certificate's private key, if it is not in `cert`",
    "key_password": "the private key's password",
    "session_timeout_ms": "how long a silent member of a group keeps its partitions (default 15000)",
    "patience_ms": "how long to wait for a broker that is down, for example restarting (default 30000)",
    "client": "what records go through: kafka-python, or librdkafka (needs stream-cgzsl[fast])",
    "transaction_timeout_ms": "how long a commit may take (default 120000; brokers allow transaction.max.timeout.ms)",
}
_MILLISECONDS = {"session_timeout_ms": 15_000, "patience_ms": 30_000, "transaction_timeout_ms": 120_000}
_SECURITY = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_SECRETS = ("password", "key_password")
_FILES = ("ca", "cert", "key", "key_password")
CLIENTS = ("kafka-python", "librdkafka")

MAX_RECORD_BYTES = 8 * 1024 * 1024
_CONNECT_MS = 8_000


@dataclass(frozen=True)
class KafkaSettings:
    """`url` contains no secrets. The methods return new keyword arguments for a client of kafka-python."""

    url: str
    hosts: tuple[str, ...]
    security: str
    session_timeout_ms: int
    patience_ms: int
    client: str | None
    """One of `CLIENTS`, if one is asked for."""
    tls: Mapping[str, str]
    """The files `ca`, `cert` and `key`, and `key_password`, where given."""
    transaction_timeout_ms: int
    _connection: Mapping[str, Any]

    @classmethod
    def parse(cls, url: str, environment: Mapping[str, str] = os.environ) -> KafkaSettings:
        """Raises `UsageError` for invalid settings. Connects to nothing."""
        address, options = _split(url)
        for name in sorted({*OPTIONS, "user", *_SECRETS} - set(options)):
            variable = f"CGZSL_KAFKA_{name.upper()}"
            value = from_environment(variable, environment) if name in _SECRETS else environment.get(variable)
            if value:
                options[name] = value
        safe_url = _without_secrets(address, options)
        hosts = _hosts(address, safe_url)
        security = _security(options, safe_url)
        if options.get("client", CLIENTS[0]) not in CLIENTS:
            raise UsageError(f"{safe_url}: client must be one of {', '.join(CLIENTS)}")
        return cls(
            url=safe_url,
            hosts=hosts,
            security=security,
            client=options.get("client"),
            tls={name: Secret(options[name]) for name in _FILES if name in options},
            **_milliseconds(options, safe_url),
            _connection={
                "bootstrap_servers": list(hosts),
                "security_protocol": security,
                **_sasl(options, security, safe_url),
                **_tls(options, security, safe_url),
            },
        )

    @property
    def patience(self) -> float:
        """In seconds."""
        return self.patience_ms / 1000

    @property
    def connect_ms(self) -> int:
        """How long the first connection may take: shorter than a restart, so that a wrong address is reported soon."""
        return min(_CONNECT_MS, self.patience_ms)

    def admin(self) -> dict[str, Any]:
        return {
            **self._connection,
            "client_id": "stream-cgzsl",
            "bootstrap_timeout_ms": self.connect_ms,
            "request_timeout_ms": self.patience_ms * 2 // 3,
            "reconnect_backoff_max_ms": 1000,
            "metadata_max_age_ms": self.patience_ms,  # how long new partitions may go unnoticed
            "retry_backoff_ms": 50,
        }

    def consumer(self, waits: bool = True) -> dict[str, Any]:
        """Reads committed records only, and never skips expired ones by itself.

        The client sends one fetch at a time to a broker. With `waits=False` a broker answers soon even for partitions
        at their end, so that they do not delay the others.
        """
        return {
            **self.admin(),
            "enable_auto_commit": False,
            "auto_offset_reset": "none",
            "isolation_level": "read_committed",
            "allow_auto_create_topics": False,
            "retry_backoff_ms": 10,  # also how long a poll sleeps during a lookup of positions
            "fetch_max_wait_ms": 250 if waits else 10,
            "fetch_max_bytes": 64 * 1024 * 1024,
            "max_partition_fetch_bytes": MAX_RECORD_BYTES,
            "metrics_enabled": False,
        }

    def member(self, group: str) -> dict[str, Any]:
        """A consumer that joins `group` and starts at the first record if the group has committed nothing."""
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
        """A producer with `name` as its transactional id."""
        return {**self.producer(), "transactional_id": name, "transaction_timeout_ms": self.transaction_timeout_ms}


def addresses(url: str) -> tuple[str, ...]:
    """The brokers named in a URL, as `host:port`. Raises `UsageError`."""
    address, options = _split(url)
    return _hosts(address, _without_secrets(address, options))


def _split(url: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(url)
    user, _, address = parts.netloc.rpartition("@")
    options = dict(parse_qsl(parts.query))
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        known = "; ".join(f"{name}: {meaning}" for name, meaning in OPTIONS.items())
        raise UsageError(f"kafka://{address}: unknown option {', '.join(unknown)}. The options are: {known}")
    if parts.path.strip("/"):
        raise UsageError(f"kafka://{address}{parts.path}: a Kafka URL has no path; topics are named with --prefix")
    if user:
        name, _, password = user.partition(":")
        options["user"] = unquote(name)
        if password:
            options["password"] = unquote(password)
    return address, options


def _without_secrets(address: str, options: Mapping[str, str]) -> str:
    user = f"{quote(options['user'])}@" if "user" in options else ""
    query = {name: value for name, value in options.items() if name != "user" and name not in _SECRETS}
    return f"kafka://{user}{address}" + (f"?{urlencode(query, safe='/')}" if query else "")


def _hosts(address: str, safe_url: str) -> tuple[str, ...]:
    hosts = []
    for part in address.split(","):
        host, colon, port = part.rpartition(":")
        if not colon or part.endswith("]"):
            host, port = part, "9092"
        if not host or not port.isdigit():
            raise UsageError(f"{safe_url}: {part!r} is not an address; use kafka://host:port[,host:port...]")
        hosts.append(f"{host}:{port}")
    return tuple(hosts)


def _security(options: Mapping[str, str], safe_url: str) -> str:
    default = "SASL_SSL" if "user" in options else "SSL" if {"ca", "cert"} & set(options) else "PLAINTEXT"
    security = options.get("security", default).upper()
    if security not in _SECURITY:
        raise UsageError(f"{safe_url}: security must be one of {', '.join(_SECURITY)}")
    if "user" in options and not security.startswith("SASL"):
        raise UsageError(f"{safe_url}: a user needs security=SASL_SSL (or SASL_PLAINTEXT on a network you trust)")
    return security


def _sasl(options: Mapping[str, str], security: str, safe_url: str) -> dict[str, Any]:
    if not security.startswith("SASL"):
        return {}
    mechanism = options.get("mechanism", "SCRAM-SHA-512").upper()
    if mechanism not in _MECHANISMS:
        raise UsageError(f"{safe_url}: mechanism must be one of {', '.join(_MECHANISMS)}")
    for name in ("user", "password"):
        if name not in options:
            also = " or CGZSL_KAFKA_PASSWORD_FILE" if name == "password" else ""
            raise UsageError(f"{safe_url}: {security} needs a {name}; set CGZSL_KAFKA_{name.upper()}{also}")
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": options["user"],
        "sasl_plain_password": Secret(options["password"]),
    }


def _tls(options: Mapping[str, str], security: str, safe_url: str) -> dict[str, Any]:
    if not security.endswith("SSL"):
        return {}
    for name in ("ca", "cert", "key"):
        if name in options and not Path(options[name]).is_file():
            raise UsageError(f"{safe_url}: the {name} file {options[name]!r} does not exist")
    try:
        context = ssl.create_default_context(cafile=options.get("ca"))
        if "cert" in options:
            context.load_cert_chain(options["cert"], options.get("key"), options.get("key_password"))
    except ssl.SSLError as error:
        raise UsageError(f"{safe_url}: cannot use the certificate files ({error}); they must be PEM files") from error
    return {"ssl_context": context}


def _milliseconds(options: Mapping[str, str], safe_url: str) -> dict[str, int]:
    found = dict(_MILLISECONDS)
    for name in set(_MILLISECONDS) & set(options):
        if not options[name].isdigit() or int(options[name]) < 1000:
            raise UsageError(f"{safe_url}: {name} must be a number of milliseconds, at least 1000")
        found[name] = int(options[name])
    return found
