"""The compose file, as far as it can be tested without an engine: its schema, its commands, and its broker settings."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from our_commands import DEPLOY, settings_of

from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.demo import broker
from stream_cgzsl.errors import BusUnavailable

FILE = DEPLOY / "compose" / "compose.yml"
WORKERS = {
    "learner": "learn",
    "standby": "learn",
    "scorer": "score",
    "scorer-2": "score",
    "evaluator": "evaluate",
    "topics": "topics",
    "feed": "feed",
}


def document() -> dict[str, Any]:
    loaded: dict[str, Any] = _filled(yaml.safe_load(FILE.read_text()))
    return loaded


def _filled(value: Any) -> Any:
    """As compose reads it where no variable is set: `${NAME:-default}` is its default."""
    if isinstance(value, dict):
        return {name: _filled(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_filled(part) for part in value]
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) if isinstance(value, str) else value


def services() -> dict[str, Any]:
    found: dict[str, Any] = document()["services"]
    return found


def test_it_is_a_compose_file() -> None:
    pytest.importorskip("check_jsonschema", reason="no compose schema: pip install check-jsonschema")
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout


def test_compose_itself_reads_it() -> None:
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
    ):
        pytest.skip("no docker compose here; the schema is checked anyway")
    done = subprocess.run(["docker", "compose", "-f", str(FILE), "config", "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_worker_is_there_and_accepts_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {name: service for name, service in services().items() if service["image"].startswith("stream-cgzsl:")}
    assert {name: service["command"][0] for name, service in ours.items()} == WORKERS
    for service in ours.values():
        settings = settings_of(service["command"], service["environment"], monkeypatch)
        assert (settings.bus, settings.prefix) == ("kafka://kafka:19092", "cgzsl")


def test_the_example_fits_the_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = services()["learner"]
    settings = settings_of(learner["command"], learner["environment"], monkeypatch)
    sizes = dict(part.split("=") for part in services()["feed"]["command"][1].partition(":")[2].split(","))
    assert (settings.attributes, settings.features) == (int(sizes["attributes"]), int(sizes["features"]))


def test_prometheus_scrapes_every_worker() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    groups = list(config["scrape_configs"][0]["static_configs"])
    for file in (DEPLOY / "compose" / "targets").glob("*.yml"):
        groups += yaml.safe_load(file.read_text())
    asked = sorted(target for group in groups for target in group["targets"])
    pages = sorted(
        f"{name}:{service['environment']['CGZSL_PORT']}"
        for name, service in services().items()
        if "CGZSL_PORT" in service.get("environment", {})
    )
    assert asked == pages
    assert {group["labels"]["stream"] for group in groups} == {"cgzsl"}


def test_mounted_files_exist() -> None:
    sources = [volume.split(":")[0] for service in services().values() for volume in service.get("volumes", ())]
    named = set(document()["volumes"])
    assert named <= set(sources)
    for source in set(sources) - named:
        assert (FILE.parent / source).exists(), source


def test_nothing_has_more_rights_than_it_needs() -> None:
    for name, service in services().items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert name == "kafka" or service["read_only"] is True, name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        assert not re.search(r":latest$|^[^:]+$", service["image"]), name


@pytest.fixture
def running(tmp_path: Path) -> Iterator[str]:
    """A broker from the released jars with the settings of the file, except for addresses."""
    try:
        broker.jars()
    except BusUnavailable as error:
        pytest.skip(f"no broker to try the settings with: {error}")
    environment: dict[str, str] = services()["kafka"]["environment"]
    ports = {name: str(broker.free_port()) for name in ("19092", "9092", "9093")}
    lines = {}
    for name, value in environment.items():
        for port, free in ports.items():
            value = re.sub(rf":{port}\b", f":{free}", value)
        lines[name.removeprefix("KAFKA_").lower().replace("_", ".")] = value.replace("kafka:", "127.0.0.1:")
    lines["log.dirs"] = str(tmp_path / "data")
    (tmp_path / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    cluster = base64.urlsafe_b64encode(b"0" * 16).decode().rstrip("=")
    format_command = [*broker.java("kafka.tools.StorageTool", broker.HEAP_MB), "format", "-t", cluster, "-c"]
    subprocess.run([*format_command, str(tmp_path / "server.properties")], check=True, capture_output=True)
    process = broker.launch(tmp_path)
    yield f"kafka://127.0.0.1:{ports['19092']}"
    process.terminate()
    process.wait(20)


@pytest.mark.kafka
def test_its_broker_starts_and_holds_a_stream(running: str, tmp_path: Path) -> None:
    with connect(running) as bus:
        bus.create(Topics("t").specs(2))
        assert Topics("t").problems(bus) == []
        with bus.publisher("t.learner") as publisher:  # needs the transaction topic and its replication settings
            publisher.begin()
            publisher.abort()
    assert "supplied but are not used yet" not in (tmp_path / "broker.log").read_text()
