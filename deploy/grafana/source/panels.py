"""Grafana's JSON of a dashboard: panels in rows of 24 columns, with a variable for the stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS = 24


@dataclass(frozen=True)
class Panel:
    """One panel. `queries` are pairs of PromQL and legend.

    In a query every selector has braces, `name{}` or `name{label="x"}`, and gets the dashboard's variables as further
    matchers. `kind` is Grafana's panel type; `unit` Grafana's name of the unit.
    """

    title: str
    description: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    steps: Sequence[tuple[float | None, str]] = ((None, "green"),)
    most: float | None = None


@dataclass(frozen=True)
class Dashboard:
    """`rows` are titles with panels; `variables` are labels to select by, each with a series that has its values."""

    uid: str
    title: str
    description: str
    variables: dict[str, str]
    rows: dict[str, Sequence[Panel]] = field(default_factory=dict)

    def document(self) -> Json:
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["cgzsl"],
            "schemaVersion": 39,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "links": [_links()],
            "templating": {"list": [_source_variable(), *(_variable(*item) for item in self.variables.items())]},
            "panels": [{"id": number, **panel} for number, panel in enumerate(self._panels(), 1)],
        }

    def _panels(self) -> Iterator[Json]:
        y = 0
        for title, panels in self.rows.items():
            yield {
                "type": "row",
                "title": title,
                "collapsed": False,
                "gridPos": _place(0, y, _COLUMNS, 1),
                "panels": [],
            }
            y += 1
            for line in _lines(panels):
                x, height = 0, 4 if all(panel.kind == "stat" for panel in line) else 8
                for panel in line:
                    yield {**_panel(panel, list(self.variables)), "gridPos": _place(x, y, panel.width, height)}
                    x += panel.width
                y += height


def _lines(panels: Iterable[Panel]) -> Iterator[list[Panel]]:
    """Panels side by side, as many as fit."""
    line: list[Panel] = []
    for panel in panels:
        if sum(p.width for p in line) + panel.width > _COLUMNS:
            yield line
            line = []
        line.append(panel)
    yield line


def _panel(panel: Panel, variables: Sequence[str]) -> Json:
    defaults: Json = {
        "unit": panel.unit,
        "min": 0 if panel.kind == "timeseries" and panel.unit != "none" else None,
        "max": panel.most,
        "thresholds": {"mode": "absolute", "steps": [{"value": value, "color": color} for value, color in panel.steps]},
        "custom": {"fillOpacity": 8, "lineWidth": 2, "spanNulls": True} if panel.kind == "timeseries" else None,
    }
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {k: v for k, v in defaults.items() if v is not None}, "overrides": []},
        "options": _OPTIONS[panel.kind],
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": SOURCE,
                "expr": _chosen(query, variables),
                "legendFormat": legend,
                "range": panel.kind != "table",
                "instant": panel.kind == "table",
                "format": {"heatmap": "heatmap", "table": "table"}.get(panel.kind, "time_series"),
            }
            for number, (query, legend) in enumerate(panel.queries)
        ],
    }


def _chosen(query: str, variables: Sequence[str]) -> str:
    """The query with the variables as matchers in every selector. Recorded sums over workers have no instance."""
    parts = query.split("{")
    for number, before in enumerate(parts[:-1]):
        known = [name for name in variables if name == "stream" or ":" not in before.split("(")[-1]]
        matchers = ", ".join(f'{name}=~"${name}"' for name in known)
        rest = parts[number + 1]
        parts[number + 1] = matchers + (rest if rest.startswith("}") else f", {rest}")
    return "{".join(parts)


def _place(x: int, y: int, width: int, height: int) -> Json:
    return {"x": x, "y": y, "w": width, "h": height}


def _links() -> Json:
    return {
        "type": "dashboards",
        "title": "stream_cgzsl",
        "tags": ["cgzsl"],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
    }


def _source_variable() -> Json:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}


def _variable(name: str, series: str) -> Json:
    query = f"label_values({series}, {name})"
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


_OPTIONS: dict[str, Json] = {
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "colorMode": "value",
        "graphMode": "area",
        "textMode": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"]},
    },
    "heatmap": {
        "calculate": False,
        "color": {"mode": "scheme", "scheme": "Blues", "steps": 64},
        "yAxis": {"axisPlacement": "left"},
    },
    "table": {"showHeader": True, "sortBy": [{"displayName": "Value", "desc": False}]},
}
