"""The rules for Prometheus: they parse, they ask for series that exist, and every alert is tested and explained."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from known_series import ALERTS, PROMETHEUS, RECORDED, unknown_in

PAGE = PROMETHEUS.parents[1] / "docs" / "operating.md"
UNIT_TESTS = {file.name: yaml.safe_load(file.read_text())["tests"] for file in (PROMETHEUS / "tests").glob("*.yml")}


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "recording.rules.yml", "alerts.rules.yml"],
        ["test", "rules", *(f"tests/{name}" for name in sorted(UNIT_TESTS))],
    ],
    ids=["config", "rules", "unit tests"],
)
def test_promtool_accepts(promtool: str, arguments: list[str]) -> None:
    done = subprocess.run([promtool, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_of_further_targets_is_valid(promtool: str, tmp_path: Path) -> None:
    (tmp_path / "birds.yml").write_text((PROMETHEUS / "targets" / "example.yml.sample").read_text())
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    assert config["scrape_configs"][0]["file_sd_configs"] == [{"files": ["targets/*.yml"]}]
    config |= {"rule_files": [], "scrape_configs": [{"job_name": "x", "file_sd_configs": [{"files": ["birds.yml"]}]}]}
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    command = [promtool, "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "WARNING" in done.stdout) == (0, False), done.stdout + done.stderr


def test_rules_name_only_series_and_labels_that_exist() -> None:
    queries = {**{name: rule["expr"] for name, rule in ALERTS.items()}, **RECORDED}
    assert {name: unknown for name, query in queries.items() if (unknown := unknown_in(query))} == {}


def test_unit_tests_feed_only_series_and_labels_that_exist() -> None:
    """What promtool proves about a rule holds for our workers only if they export the series it was fed."""
    fed = {
        series["series"] for scenarios in UNIT_TESTS.values() for test in scenarios for series in test["input_series"]
    }
    assert {series: unknown for series in fed if (unknown := unknown_in(series))} == {}


@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ('sum by (role) (rate(cgzsl_records_total{fate="dead", job=~"j.*"}[5m])) + on (job) cgzsl_ready', set()),
        ("rate(cgzsl_records[5m])", {"cgzsl_records"}),
        ('cgzsl_ready{kind="k"}', {"kind", "cgzsl_ready: kind"}),
        ('cgzsl_ready{kind="k"} + cgzsl_classes', {"cgzsl_ready: kind"}),
        ("sum by (kind) (cgzsl_ready offset 1h)", {"kind"}),
        (
            'stream:cgzsl_learner_active:sum{instance=~"$instance"}',
            {"instance", "stream:cgzsl_learner_active:sum: instance"},
        ),
    ],
)
def test_what_does_not_exist_is_found(query: str, unknown: set[str]) -> None:
    assert unknown_in(query) == unknown


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_series_is_named_after_its_labels(name: str) -> None:
    level, metric, _ = name.split(":")
    assert f"by ({', '.join(level.split('_'))}" in RECORDED[name]
    assert metric.startswith("cgzsl_")


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_gives_its_severity_what_happened_and_where_to_read_on(name: str) -> None:
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert "{{ $labels.stream }}" in rule["annotations"]["summary"]
    assert re.search(r"\{\{ \$value|\d+ minutes", rule["annotations"]["description"])
    assert rule["annotations"]["runbook_url"] == f"docs/operating.md#{name.lower()}"


def test_every_alert_has_its_section_and_every_section_its_alert() -> None:
    section = PAGE.read_text().partition("\n## Alerts\n")[2].partition("\n## ")[0]
    described = re.findall(r"^### (\w+)\n(.+)", section, re.MULTILINE)
    assert [name for name, _ in described] == list(ALERTS)
    assert all(len(paragraph) > 80 for _, paragraph in described)


def test_every_alert_fires_in_one_unit_test_and_stays_silent_in_another() -> None:
    fired, silent = set(), set()
    for scenario in (scenario for scenarios in UNIT_TESTS.values() for scenario in scenarios):
        outcomes: dict[str, list[bool]] = {}
        for check in scenario["alert_rule_test"]:
            outcomes.setdefault(check["alertname"], []).append(bool(check["exp_alerts"]))
        fired |= {name for name, results in outcomes.items() if any(results)}
        silent |= {name for name, results in outcomes.items() if not any(results)}
    assert (fired, silent) == (set(ALERTS), set(ALERTS))
