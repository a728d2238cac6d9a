"""The dashboards for Grafana: written by their source, tidy, and asking only for what there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from promql import asked, unknown_in
from test_rules import known

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana"
NAMES = ("stream", "learning", "serving")
UNITS = {"none", "short", "s", "bytes", "percentunit", "cps", "reqps", "radian"}


def board(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / "dashboards" / f"{name}.json").read_text())
    return document


def panels(name: str) -> list[dict[str, Any]]:
    return [panel for panel in board(name)["panels"] if panel["type"] != "row"]


def filled(query: str) -> str:
    """A query as Grafana would send it with everything chosen."""
    return query.replace("$__rate_interval", "1m").replace("$stream", ".*").replace("$instance", ".*")


TARGETS = [
    pytest.param(panel, target, id=f"{name}: {panel['title']} {target['refId']}")
    for name in NAMES
    for panel in panels(name)
    for target in panel["targets"]
]


def test_they_are_what_their_source_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, FOLDER / "source" / "write.py", tmp_path], check=True)
    written = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert written == {file.name: file.read_text() for file in (FOLDER / "dashboards").iterdir()}
    assert set(written) == {f"{name}.json" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_panels_lie_beside_each_other_and_within_the_page(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board(name)["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in board(name)["panels"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", NAMES)
def test_panels_say_what_they_show_and_in_which_unit(name: str) -> None:
    for panel in panels(name):
        assert panel["title"] and panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]


@pytest.mark.parametrize("name", NAMES)
def test_the_stream_can_be_chosen(name: str) -> None:
    variables = {variable["name"]: variable for variable in board(name)["templating"]["list"]}
    assert variables["stream"]["query"]["query"] == "label_values(cgzsl_build_info, stream)"
    assert set(variables) == {"datasource", "stream"} | ({"instance"} if name == "serving" else set())
    for variable in variables.values():
        if variable["type"] == "query":
            selector = variable["query"]["query"].removeprefix("label_values(").rpartition(",")[0]
            assert unknown_in(selector, known()) == []


@pytest.mark.parametrize(("panel", "target"), TARGETS)
def test_a_query_asks_for_what_there_is(panel: dict[str, Any], target: dict[str, Any]) -> None:
    assert unknown_in(target["expr"], known()) == []
    assert all("stream" in labels for _, labels in asked(target["expr"]).series), "the chosen stream must count"
    assert panel["datasource"] == target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


@pytest.mark.parametrize(("panel", "target"), TARGETS)
def test_a_legend_names_labels_the_result_has(panel: dict[str, Any], target: dict[str, Any]) -> None:
    named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    found = asked(target["expr"])
    whole = frozenset[str]().union(*(known()[series] for series, _ in found.series))
    grouped = re.search(r"\bby \(", target["expr"]) is not None
    assert named, panel["title"]
    assert named <= (found.grouping if grouped else whole)


def test_every_query_parses(promtool: str, tmp_path: Path) -> None:
    recorded = [
        {"record": f"panel:number:{number}", "expr": filled(target.values[1]["expr"])}  # type: ignore[index]
        for number, target in enumerate(TARGETS)
    ]
    file = tmp_path / "queries.rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    done = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, check=False)
    assert (done.returncode, f"{len(TARGETS)} rules found" in done.stdout) == (0, True), done.stdout + done.stderr


def test_what_is_provisioned_fits_together() -> None:
    """Grafana itself is not asked; these are the fields by which its files find each other."""
    (source,) = yaml.safe_load((FOLDER / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    config = yaml.safe_load((FOLDER.parent / "prometheus" / "prometheus.yml").read_text())
    assert (source["type"], source["jsonData"]["timeInterval"]) == ("prometheus", config["global"]["scrape_interval"])
    (provider,) = yaml.safe_load((FOLDER / "provisioning/dashboards/cgzsl.yml").read_text())["providers"]
    assert (provider["type"], provider["options"]) == ("file", {"path": "/var/lib/grafana/dashboards"})
