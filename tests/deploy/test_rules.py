"""The rules for Prometheus: they parse, they ask for what there is, and every alert is tested and explained."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from promql import TARGET, all_exported, asked, unknown_in

FOLDER = Path(__file__).parents[2] / "deploy" / "prometheus"
PAGE = FOLDER.parents[1] / "docs" / "operating.md"


def rules(file: str) -> list[dict[str, Any]]:
    document = yaml.safe_load((FOLDER / file).read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


ALERTS = {rule["alert"]: rule for rule in rules("alerts.rules.yml")}
RECORDED = {rule["record"]: rule["expr"] for rule in rules("recording.rules.yml")}


@cache
def known() -> dict[str, frozenset[str]]:
    """All series there are, those that rules record included."""
    series = dict(all_exported())
    for name, query in RECORDED.items():
        series[name] = asked(query).grouping & (TARGET | frozenset(name.partition(":")[0].split("_")))
    return series


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "recording.rules.yml", "alerts.rules.yml"],
        ["test", "rules", *sorted(str(file) for file in (FOLDER / "tests").glob("*.yml"))],
    ],
    ids=["config", "rules", "unit tests"],
)
def test_promtool_accepts(promtool: str, arguments: list[str]) -> None:
    done = subprocess.run([promtool, *arguments], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_of_further_targets_is_one(promtool: str, tmp_path: Path) -> None:
    (tmp_path / "birds.yml").write_text((FOLDER / "targets" / "example.yml.sample").read_text())
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    assert config["scrape_configs"][0]["file_sd_configs"] == [{"files": ["targets/*.yml"]}]
    config |= {"rule_files": [], "scrape_configs": [{"job_name": "x", "file_sd_configs": [{"files": ["birds.yml"]}]}]}
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    command = [promtool, "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "WARNING" in done.stdout) == (0, False), done.stdout + done.stderr


@pytest.mark.parametrize("name", [*ALERTS, *RECORDED])
def test_a_rule_asks_for_what_there_is(name: str) -> None:
    query = ALERTS[name]["expr"] if name in ALERTS else RECORDED[name]
    assert unknown_in(query, known()) == []


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_series_is_named_after_its_labels(name: str) -> None:
    level, metric, _ = name.split(":")
    assert f"by ({', '.join(level.split('_'))}" in RECORDED[name]
    assert metric.startswith("cgzsl_")


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_how_bad_it_is_what_happened_and_where_to_read_on(name: str) -> None:
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert "{{ $labels.stream }}" in rule["annotations"]["summary"]
    assert re.search(r"\{\{ \$value|\d+ minutes", rule["annotations"]["description"])
    assert rule["annotations"]["runbook_url"] == f"docs/operating.md#{name.lower()}"


def test_every_alert_has_its_section_and_every_section_its_alert() -> None:
    section = PAGE.read_text().partition("\n## Alerts\n")[2].partition("\n## ")[0]
    told = re.findall(r"^### (\w+)\n(.+)", section, re.MULTILINE)
    assert [name for name, _ in told] == list(ALERTS)
    assert all(len(paragraph) > 80 for _, paragraph in told)


def test_every_alert_is_seen_to_fire_and_not_to_fire() -> None:
    fired, silent = set(), set()
    for file in (FOLDER / "tests").glob("*.yml"):
        for scenario in yaml.safe_load(file.read_text())["tests"]:
            outcomes: dict[str, list[bool]] = {}
            for check in scenario["alert_rule_test"]:
                outcomes.setdefault(check["alertname"], []).append(bool(check["exp_alerts"]))
            fired |= {name for name, results in outcomes.items() if any(results)}
            silent |= {name for name, results in outcomes.items() if not any(results)}
    assert (fired, silent) == (set(ALERTS), set(ALERTS))
