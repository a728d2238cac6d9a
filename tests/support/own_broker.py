"""A broker that a test may kill, with listeners that require a login or a certificate."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import UserScramCredentialUpsertion

from stream_cgzsl.bus.acls import ACLS
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.demo import broker

USERS = tuple(ACLS)
PASSWORDS = {"alice": "alice's secret", "mallory": "mallory-s-secret", **{user: f"{user}-s-secret" for user in USERS}}


@dataclass
class OwnBroker:
    """`ca.crt` signs all certificates; alice may do anything, all other users may only log in."""

    broker: broker.Broker
    sasl_plaintext: str
    sasl_ssl: str
    ssl: str
    certificates: Path

    @property
    def url(self) -> str:
        return self.broker.url

    def file(self, name: str) -> str:
        return str(self.certificates / name)


@contextmanager
def running(directory: Path) -> Iterator[OwnBroker]:
    certificates = _certificates(directory)
    ports = [broker.free_port() for _ in range(3)]
    started = broker.start(directory / "kafka", properties=_properties(certificates, ports))
    try:
        _add_scram_users(started.url)
        yield OwnBroker(started, *(f"127.0.0.1:{port}" for port in ports), certificates)
    finally:
        started.stop()


def _properties(certificates: Path, ports: list[int]) -> dict[str, str]:
    names = ("SASL_PLAINTEXT", "SASL_SSL", "SSL")
    known = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
    plain = f"org.apache.kafka.common.security.plain.PlainLoginModule required {known};"
    properties = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)),
        "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in ("PLAINTEXT", *names))
        + ",CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates / "ca.crt"),
        "listener.name.ssl.ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "group.min.session.timeout.ms": "1000",  # so that tests do not wait long
        "super.users": "User:ANONYMOUS;User:alice;User:CN=client",
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        properties[f"listener.name.{listener}.plain.sasl.jaas.config"] = plain
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            properties[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            )
    return properties


def _add_scram_users(url: str) -> None:
    admin = KafkaAdminClient(**KafkaSettings.parse(url).admin())
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(user, mechanism, password) for user, password in PASSWORDS.items()]
        )
    admin.close()


def _certificates(directory: Path) -> Path:
    """Our own certificate authority, a server's certificate and a client's, each with its key."""
    folder = directory / "certificates"
    folder.mkdir()

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new = ("req", "-newkey", "rsa:2048", "-nodes", "-subj")
    openssl(*new, "/CN=ca", "-keyout", "ca.key", "-x509", "-addext", "keyUsage=keyCertSign", "-out", "ca.crt")
    for name, extension in (("server", "IP:127.0.0.1"), ("client", "DNS:client")):
        openssl(*new, f"/CN={name}", "-keyout", f"{name}.key", "-out", "csr")
        (folder / "extension").write_text(f"subjectAltName={extension}\nauthorityKeyIdentifier=keyid\n")
        openssl(
            *f"x509 -req -in csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile extension -out {name}.crt".split()
        )
    (folder / "server.pem").write_text((folder / "server.key").read_text() + (folder / "server.crt").read_text())
    return folder
