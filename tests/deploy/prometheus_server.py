"""A real Prometheus with the rules we deploy and short intervals."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import yaml
from patience import PATIENCE_SECONDS

DEPLOYED = Path(__file__).parents[2] / "deploy" / "prometheus"
SCRAPE_SECONDS = 2


@dataclass(frozen=True)
class Prometheus:
    url: str

    def ask(self, path: str, **parameters: str) -> Any:
        with urlopen(f"{self.url}/api/v1/{path}?{urlencode(parameters)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def series(self, query: str) -> list[dict[str, Any]]:
        """What a query returns now: labels and value of each series."""
        result: list[dict[str, Any]] = self.ask("query", query=query)["result"]
        return result

    def query(self, query: str) -> list[float]:
        """The values a query returns now, without NaN."""
        values = [float(series["value"][1]) for series in self.series(query)]
        return [value for value in values if value == value]

    def firing(self) -> set[str]:
        alerts = self.ask("alerts")["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def broken_rules(self) -> dict[str, str]:
        """Rules whose last evaluation ended with an error."""
        rules = [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]
        return {rule["name"]: rule["lastError"] for rule in rules if rule["health"] == "err"}


@contextmanager
def prometheus_with(program: str, directory: Path, workers: Mapping[str, str], stream: str) -> Iterator[Prometheus]:
    """Scrapes `workers`, addresses by name, until the block is left."""
    directory.mkdir()
    _write(directory, workers, stream)
    port = _free_port()
    command = [
        program,
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (directory / "prometheus.log").open("wb") as log, subprocess.Popen(command, stderr=log, stdout=log) as process:
        try:
            started = Prometheus(f"http://127.0.0.1:{port}")
            _wait_until_ready(started, process, directory / "prometheus.log")
            yield started
        finally:
            process.terminate()


def _write(directory: Path, workers: Mapping[str, str], stream: str) -> None:
    """The deployed files, with other targets and intervals; critical alerts fire after seconds instead of minutes."""
    config = yaml.safe_load((DEPLOYED / "prometheus.yml").read_text())
    config["global"] = {
        "scrape_interval": f"{SCRAPE_SECONDS}s",
        "scrape_timeout": f"{SCRAPE_SECONDS}s",
        "evaluation_interval": "1s",
    }
    (job,) = config["scrape_configs"]
    targets = [urlsplit(address).netloc for address in workers.values()]
    job["static_configs"] = [{"targets": targets, "labels": {"stream": stream}}]
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    for file in config["rule_files"]:
        document = yaml.safe_load((DEPLOYED / file).read_text())
        for rule in (rule for group in document["groups"] for rule in group["rules"]):
            if rule.get("labels", {}).get("severity") == "critical":
                rule["for"] = re.sub(r"^(\d+)m$", lambda found: f"{3 * int(found[1])}s", rule["for"])
        (directory / file).write_text(yaml.safe_dump(document))


def _wait_until_ready(server: Prometheus, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(f"{server.url}/-/ready", timeout=5):
                return
        except URLError:
            time.sleep(0.1)
    raise AssertionError(f"Prometheus did not start; it says:\n{log.read_text()}")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
