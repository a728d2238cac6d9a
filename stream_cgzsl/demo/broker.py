"""A single Apache Kafka broker on this machine, for trials and tests. It needs only Java and Maven.

The released jars are downloaded once, to `~/.cache/stream-cgzsl` (or `CGZSL_CACHE`). The broker listens on 127.0.0.1
only, requires no password and keeps one copy of everything: it is not for production.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from stream_cgzsl.errors import BusUnavailable

VERSION = "4.3.0"
_SCALA = "2.13"
_SLF4J = "1.7.36"
_JAVA = 17
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0
_STATE = "broker.json"
_LOG = "broker.log"
_PROPERTIES = "server.properties"

_POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>stream-cgzsl</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_{_SCALA}</artifactId><version>{VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>{_SLF4J}</version>
    </dependency>
  </dependencies>
</project>
"""


class Broker:
    """A running broker with its data in `directory`. End its process with `stop` or `kill`."""

    def __init__(self, directory: Path, address: str, process: subprocess.Popen[bytes]) -> None:
        self.directory = directory
        self.address = address
        self._process = process

    @property
    def url(self) -> str:
        return f"kafka://{self.address}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """Shuts the broker down cleanly, with everything acknowledged on disk. Returns when its process has ended."""
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kills the broker at once, like a crash."""
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        """Starts the broker again with the same data and port; stops it first if it is running."""
        if self._process.poll() is None:
            self.stop()
        self._process = _launch(self.directory)


def start(directory: Path, port: int = 0, properties: Mapping[str, str] | None = None) -> Broker:
    """Starts a broker with its data in `directory` and returns when it answers.

    Port 0 means any free one. `properties` are added to the broker's own, and `listeners` among them to its listeners.
    Raises `BusUnavailable` if it cannot start.
    """
    address = _prepare(directory, port, properties or {})
    return Broker(directory, address, _launch(directory))


def start_detached(port: int, directory: Path) -> str:
    """Starts a broker that outlives this process and returns its address, `host:port`.

    If one is already running in `directory`, returns its address.
    """
    running = _detached(directory)
    if running is not None:
        return running[1]
    address = _prepare(directory, port, {})
    process = _launch(directory)
    (directory / _STATE).write_text(json.dumps({"pid": process.pid, "address": address}))
    return address


def stop_detached(directory: Path) -> bool:
    """Stops the broker that `start_detached` started in `directory` and keeps its data. False if none is running."""
    running = _detached(directory)
    (directory / _STATE).unlink(missing_ok=True)
    if running is None:
        return False
    pid = running[0]
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while _runs_in(directory, pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return True


def default_directory() -> Path:
    """Where a detached broker keeps its data by default."""
    return _cache() / "broker"


def _detached(directory: Path) -> tuple[int, str] | None:
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


def _prepare(directory: Path, port: int, properties: Mapping[str, str]) -> str:
    """Writes the broker's settings and formats its data directory if it is new. Returns its address."""
    jars()
    directory.mkdir(parents=True, exist_ok=True)
    if port and _is_taken(port):
        raise BusUnavailable(f"port {port} of 127.0.0.1 is in use by another program; choose another port")
    ports = [port or free_port(), free_port()]
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{ports[0]},CONTROLLER://127.0.0.1:{ports[1]}",
        "controller.quorum.voters": f"1@127.0.0.1:{ports[1]}",
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
        first, *rest = uuid.uuid4().bytes
        cluster = base64.urlsafe_b64encode(bytes([first & 0x7F, *rest])).decode().rstrip("=")  # must not start with "-"
        done = subprocess.run(
            [*_java("kafka.tools.StorageTool"), "format", "-t", cluster, "-c", str(path)],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise BusUnavailable(
                f"cannot prepare a Kafka broker in {directory}:\n{done.stdout.decode()}{done.stderr.decode()}"
            )
    return f"127.0.0.1:{ports[0]}"


def _launch(directory: Path) -> subprocess.Popen[bytes]:
    """Starts the process and waits until it logs that it is ready."""
    log = directory / _LOG
    log.write_bytes(b"")
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*_java("kafka.Kafka"), str(directory.resolve() / _PROPERTIES)],
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


# ---- Java and the jars


def jars() -> Path:
    """The folder with Kafka's jars, downloaded with Maven the first time. Raises `BusUnavailable` if that fails."""
    _require_java()
    folder = _cache() / f"kafka-{VERSION}"
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise BusUnavailable(
            f"cannot download Kafka {VERSION}: no `mvn` on the PATH; install Maven (Debian: apt install maven)"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        (Path(made) / "pom.xml").write_text(_POM)
        downloaded = Path(made) / "jars"
        command = [maven, "-q", "-B", "-f", str(Path(made) / "pom.xml"), "dependency:copy-dependencies"]
        done = subprocess.run(
            [*command, "-DincludeScope=runtime", f"-DoutputDirectory={downloaded}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BusUnavailable(f"cannot download Kafka {VERSION} with Maven:\n{(done.stdout + done.stderr)[-2000:]}")
        try:
            downloaded.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process has downloaded the same jars
                raise
    return folder


def _require_java() -> None:
    java = shutil.which("java")
    advice = f"Kafka {VERSION} needs Java {_JAVA} or newer (Debian: apt install openjdk-17-jre-headless)"
    if java is None:
        raise BusUnavailable(f"no `java` on the PATH; {advice}")
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', shown)
    if found is None or int(found.group(1)) < _JAVA:
        raise BusUnavailable(f"{java} is {shown.splitlines()[0] if shown else 'not a Java'}; {advice}")


def _java(main: str) -> list[str]:
    """A JVM tuned for a fast start and little memory, not for throughput."""
    return ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*", main]


def _cache() -> Path:
    return Path(os.environ.get("CGZSL_CACHE") or Path.home() / ".cache" / "stream-cgzsl")
