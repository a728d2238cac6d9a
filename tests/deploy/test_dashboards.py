"""The dashboards for Grafana: written by their source, tidy, and asking only for series that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from known_series import selectors, unknown_in

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana"
NAMES = ("stream", "learning", "serving")
UNITS = {"none", "short", "s", "bytes", "percentunit", "cps", "reqps", "radian"}


def board(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / "dashboards" / f"{name}.json").read_text())
    return document


def panels(name: str) -> list[dict[str, Any]]:
    return [panel for panel in board(name)["panels"] if panel["type"] != "row"]


def filled(query: str) -> str:
    """A query as Grafana would send it, with all streams and instances selected; a series must have these labels."""
    return query.replace("$__rate_interval", "1m").replace("$stream", ".+").replace("$instance", ".+")


TARGETS = {
    f"{name}: {panel['title']} {target['refId']}": target
    for name in NAMES
    for panel in panels(name)
    for target in panel["targets"]
}


def variables(name: str) -> dict[str, str]:
    """The selector whose series have the values of each variable."""
    queries = {v["name"]: v["query"]["query"] for v in board(name)["templating"]["list"] if v["type"] == "query"}
    return {label: re.fullmatch(rf"label_values\((.*), {label}\)", query)[1] for label, query in queries.items()}  # type: ignore[index]


def test_they_are_what_their_source_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, FOLDER / "source" / "write.py", tmp_path], check=True)
    written = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert written == {file.name: file.read_text() for file in (FOLDER / "dashboards").iterdir()}
    assert set(written) == {f"{name}.json" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_panels_do_not_overlap_and_fit_the_page(name: str) -> None:
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
def test_panels_have_a_title_a_description_and_a_unit(name: str) -> None:
    for panel in panels(name):
        assert panel["title"] and panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]


@pytest.mark.parametrize("name", NAMES)
def test_the_stream_can_be_selected(name: str) -> None:
    of_a_scorer = {"instance": 'cgzsl_build_info{worker="scorer", stream=~"$stream"}'}
    assert variables(name) == {"stream": "cgzsl_build_info"} | (of_a_scorer if name == "serving" else {})
    for panel in panels(name):
        for target in panel["targets"]:
            assert panel["datasource"] == target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert all('stream=~"$stream"' in selector for selector in selectors(target["expr"])), panel["title"]


def test_queries_name_only_series_and_labels_that_exist() -> None:
    queries = {title: target["expr"] for title, target in TARGETS.items()}
    queries |= {f"{name}: ${label}": selector for name in NAMES for label, selector in variables(name).items()}
    assert {title: unknown for title, query in queries.items() if (unknown := unknown_in(query))} == {}
    assert all(selectors(query) for query in queries.values())


def test_every_query_parses(promtool: str, tmp_path: Path) -> None:
    recorded = [
        {"record": f"panel:number:{number}", "expr": filled(target["expr"])}
        for number, target in enumerate(TARGETS.values())
    ]
    file = tmp_path / "queries.rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    done = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, check=False)
    assert (done.returncode, f"{len(TARGETS)} rules found" in done.stdout) == (0, True), done.stdout + done.stderr


def test_provisioned_files_refer_to_each_other() -> None:
    """By the fields alone: Grafana itself is not started."""
    (source,) = yaml.safe_load((FOLDER / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    config = yaml.safe_load((FOLDER.parent / "prometheus" / "prometheus.yml").read_text())
    assert (source["type"], source["jsonData"]["timeInterval"]) == ("prometheus", config["global"]["scrape_interval"])
    (provider,) = yaml.safe_load((FOLDER / "provisioning/dashboards/cgzsl.yml").read_text())["providers"]
    assert (provider["type"], provider["options"]) == ("file", {"path": "/var/lib/grafana/dashboards"})
