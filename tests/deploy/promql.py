"""Which series a query asks for, and which labels it names. Enough of PromQL for our own rules and dashboards."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from prometheus_client.metrics import MetricWrapperBase

from stream_cgzsl.distribution import Distribution
from stream_cgzsl.metrics import EvaluatorMetrics, LearnerMetrics, Metrics, ScorerMetrics

TARGET = frozenset({"job", "instance", "stream"})
"""Labels that every series gets from its scrape target."""

WORKERS: dict[str, type[Metrics]] = {
    "learner": LearnerMetrics,
    "scorer": ScorerMetrics,
    "evaluator": EvaluatorMetrics,
}

_GROUPING = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"[^"]*"')
_KEYWORDS = {"and", "or", "unless", "offset", "bool", "by", "on"}


class Asked(NamedTuple):
    """The names of series, each with the labels its matchers name; and the labels that results are grouped by."""

    series: list[tuple[str, frozenset[str]]]
    grouping: frozenset[str]


def asked(query: str) -> Asked:
    grouping = frozenset(
        label.strip() for found in _GROUPING.findall(query) for label in found.split(",") if label.strip()
    )
    rest = _GROUPING.sub(" ", query)
    series = [(name, frozenset(_MATCHER.findall(matchers))) for name, matchers in _SELECTOR.findall(rest)]
    rest = re.sub(r"\[[^]]*\]|\boffset\s+\w+", " ", _SELECTOR.sub(" ", rest))
    names = [n for n in re.findall(r"(?<![\w.])[a-zA-Z_:][\w:]*(?!\s*\(|[\w:])", rest) if n not in _KEYWORDS]
    return Asked(series + [(name, frozenset()) for name in names], grouping)


def exported(metrics: Metrics) -> dict[str, frozenset[str]]:
    """Every series of a worker with its own labels."""
    found: dict[str, frozenset[str]] = {}
    for family in metrics.registry.collect():
        if family.name.startswith("process_"):
            found[family.name + ("_total" if family.type == "counter" else "")] = frozenset()
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            found |= _series(metric._name, metric._type, frozenset(metric._labelnames))
        elif isinstance(metric, Distribution):
            names = {sample.name for family in metric.collect() for sample in family.samples}
            found |= {name: frozenset({"le"} if name.endswith("_bucket") else ()) for name in names}
    return found | {"cgzsl_build_info": frozenset({"version", "worker"})}


def _series(name: str, kind: str, labels: frozenset[str]) -> dict[str, frozenset[str]]:
    if kind == "histogram":
        return {f"{name}_bucket": labels | {"le"}, f"{name}_sum": labels, f"{name}_count": labels}
    return {f"{name}_total" if kind == "counter" else name: labels}


@cache
def all_exported() -> dict[str, frozenset[str]]:
    """The series of all workers, with the labels they have on a Prometheus."""
    merged: dict[str, frozenset[str]] = {}
    for worker in WORKERS.values():
        merged |= {name: labels | TARGET for name, labels in exported(worker()).items()}  # type: ignore[call-arg]
    return merged


def unknown_in(query: str, known: dict[str, frozenset[str]]) -> list[str]:
    """What a query asks for that there is not: series, and labels they do not have."""
    found = asked(query)
    missing = [name for name, _ in found.series if name not in known]
    wrong = [f"{name}: {label}" for name, labels in found.series for label in labels - known.get(name, labels)]
    possible = frozenset[str]().union(*(known.get(name, frozenset()) for name, _ in found.series))
    return missing + wrong + [f"by {label}" for label in sorted(found.grouping - possible)]
