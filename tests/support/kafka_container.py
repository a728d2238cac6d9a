"""Apache Kafka in Docker, for machines with Docker and without Java."""

from __future__ import annotations

import socket
from collections.abc import Callable

from docker.errors import DockerException
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from stream_cgzsl.demo.jars import VERSION
from stream_cgzsl.errors import BusUnavailable


def start_container() -> tuple[str, Callable[[], None]]:
    """The URL of a broker in a new container, reachable from this machine only, and the function that stops it.

    Raises `BusUnavailable` if Docker is not available or cannot run the image.
    """
    try:
        DockerClient().client.ping()
    except DockerException as error:
        raise BusUnavailable(f"Docker cannot be used ({str(error)[:200]})") from error
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    container = DockerContainer(f"apache/kafka:{VERSION}")
    container.ports[f"{port}/tcp"] = ("127.0.0.1", port)
    for name, value in {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": f"PLAINTEXT://0.0.0.0:{port},CONTROLLER://localhost:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS": "1000",
        "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
    }.items():
        container.with_env(name, value)
    container.waiting_for(LogMessageWaitStrategy("Kafka Server started").with_startup_timeout(120))
    try:
        container.start()
    except Exception as error:  # for example no registry or no port: it cannot run here
        container.stop()
        raise BusUnavailable(f"Docker cannot run the Kafka image ({str(error)[:200]})") from error
    return f"kafka://127.0.0.1:{port}", container.stop
