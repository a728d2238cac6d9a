"""An Apache Kafka broker on this machine, for trials and tests; cluster.py has several. It needs only Java and Maven.

The released jars are downloaded once, to `~/.cache/stream-cgzsl` (or `CGZSL_CACHE`). The broker listens on 127.0.0.1
only, requires no password and keeps one copy of everything: it is not for production.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from stream_cgzsl.demo.jars import cache, jars, java
from stream_cgzsl.errors import BusUnavailable

HEAP_MB = 512
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0
_STATE = "broker.json"
_LOG = "broker.log"
_PROPERTIES = "server.properties"


class Broker:
    """A running broker with its data in `directory`. End its process with `stop` or `kill`."""

    def __init__(self, directory: Path, address: str, process: subprocess.Popen[bytes], heap_mb: int = HEAP_MB) -> None:
        self.directory = directory
        self.address = address
        self._process = process
        self._heap_mb = heap_mb

    @property
    def url(self) -> str:
        return f"kafka://{self.address}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """Shuts the broker down cleanly, with everything acknowledged on disk. Returns when its process has ended."""
        self._process.terminate()
        self.resume()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kills the broker at once, like a crash."""
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Stops the process without ending it: its connections stay open and nothing answers."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a paused process continue."""
        self._process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Starts the broker again with the same data and port; stops it first if it is running."""
        if self._process.poll() is None:
            self.stop()
        self._process = launch(self.directory, self._heap_mb)


def start(directory: Path, port: int = 0, properties: Mapping[str, str] | None = None) -> Broker:
    """Starts a broker with its data in `directory` and returns when it answers.

    Port 0 means any free one. `properties` are added to the broker's own, and `listeners` among them to its listeners.
    Raises `BusUnavailable` if it cannot start.
    """
    address = prepare(directory, (port, 0), properties or {})
    return Broker(directory, address, launch(directory))


def start_detached(port: int, directory: Path) -> str:
    """Starts a broker that outlives this process and returns its address, `host:port`.

    If one is already running in `directory`, returns its address.
    """
    running = detached(directory)
    if running is not None:
        return running[1]
    started = start(directory, port)
    detach(started)
    return started.address


def detach(started: Broker) -> None:
    """Remembers a broker, so that `stop_detached` finds it."""
    (started.directory / _STATE).write_text(json.dumps({"pid": started.pid, "address": started.address}))


def stop_detached(directory: Path, patience: float = _STOP_SECONDS) -> bool:
    """Stops the broker that `start_detached` started in `directory` and keeps its data. False if none is running.

    One that takes longer than `patience` seconds to stop is killed.
    """
    running = detached(directory)
    (directory / _STATE).unlink(missing_ok=True)
    if running is None:
        return False
    pid = running[0]
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + patience
    while _runs_in(directory, pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return True


def default_directory() -> Path:
    """Where a detached broker keeps its data by default."""
    return cache() / "broker"


def detached(directory: Path) -> tuple[int, str] | None:
    """The process id and the address of the detached broker that runs in `directory`."""
    try:
        state = json.loads((directory / _STATE).read_text())
    except FileNotFoundError:
        return None
    return (state["pid"], state["address"]) if _runs_in(directory, state["pid"]) else None


def _runs_in(directory: Path, pid: int) -> bool:
    """Whether that process is the broker of that directory: the process id may have been reused."""
    shown = subprocess.run(
        ["ps", "-ww", "-o", "stat=,command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return str(directory.resolve() / _PROPERTIES) in shown.stdout and not shown.stdout.lstrip().startswith("Z")


# ---- preparing and launching


def address_in(directory: Path) -> str:
    """Where the broker whose data is in `directory` listens for clients."""
    found = re.search(r"PLAINTEXT://([^,\n]+)", (directory / _PROPERTIES).read_text())
    if found is None:
        raise BusUnavailable(f"{directory / _PROPERTIES} names no address; delete {directory} and start again")
    return found.group(1)


def new_cluster_id() -> str:
    first, *rest = uuid.uuid4().bytes
    return base64.urlsafe_b64encode(bytes([first & 0x7F, *rest])).decode().rstrip("=")  # must not start with "-"


def prepare(
    directory: Path, ports: tuple[int, int], properties: Mapping[str, str], cluster_id: str | None = None
) -> str:
    """Writes the broker's settings and formats its data directory if it is new. Returns its address.

    The ports are those for clients and for controllers; 0 means any free one.
    """
    jars()
    directory.mkdir(parents=True, exist_ok=True)
    if ports[0] and _is_taken(ports[0]):
        raise BusUnavailable(f"port {ports[0]} of 127.0.0.1 is in use by another program; choose another port")
    port, controller = (port or free_port() for port in ports)
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(directory.resolve() / "data"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        "broker.heartbeat.interval.ms": "500",
        "broker.session.timeout.ms": "3000",  # a killed broker can register again only after this
        **{name: value for name, value in properties.items() if name != "listeners"},
    }
    if "listeners" in properties:
        settings["listeners"] += f",{properties['listeners']}"
    path = directory / _PROPERTIES
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    if not (directory / "data" / "meta.properties").exists():
        done = subprocess.run(
            [
                *java("kafka.tools.StorageTool", HEAP_MB),
                "format",
                "-t",
                cluster_id or new_cluster_id(),
                "-c",
                str(path),
            ],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise BusUnavailable(
                f"cannot prepare a Kafka broker in {directory}:\n{done.stdout.decode()}{done.stderr.decode()}"
            )
    return f"127.0.0.1:{port}"


def launch(directory: Path, heap_mb: int = HEAP_MB) -> subprocess.Popen[bytes]:
    """Starts the process and waits until it logs that it is ready."""
    log = directory / _LOG
    log.write_bytes(b"")
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*java("kafka.Kafka", heap_mb), str(directory.resolve() / _PROPERTIES)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C must not stop the broker before us
        )
    deadline = time.monotonic() + _START_SECONDS
    while b"Kafka Server started" not in log.read_bytes():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            last = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise BusUnavailable(f"the Kafka broker in {directory} did not start; its log {log} ends with:\n{last}")
        time.sleep(0.05)
    return process


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
