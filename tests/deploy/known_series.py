"""Every series a Prometheus can have from us, with its labels; and what a query names that is not among them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.metrics import MetricWrapperBase

from stream_cgzsl.runtime.histogram import BatchHistogram
from stream_cgzsl.runtime.metrics import EvaluatorMetrics, LearnerMetrics, Metrics, ScorerMetrics

PROMETHEUS = Path(__file__).parents[2] / "deploy" / "prometheus"

TARGET = frozenset({"job", "instance", "stream"})
"""Labels that every series gets from its scrape target."""

WORKERS: dict[str, type[Metrics]] = {"learner": LearnerMetrics, "scorer": ScorerMetrics, "evaluator": EvaluatorMetrics}

PROMQL = {
    *("sum", "max", "count", "group", "bottomk", "by", "on", "group_left", "and", "or", "unless", "offset"),
    *("rate", "increase", "histogram_quantile", "avg_over_time", "last_over_time", "time", "changes"),
}
"""The words of PromQL that our queries use."""

_SELECTOR = re.compile(r"[a-zA-Z_:][\w:]*(?:\{[^}]*\})?")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_STRING = re.compile(r'"[^"]*"')


def rules(file: str) -> list[dict[str, Any]]:
    document = yaml.safe_load((PROMETHEUS / file).read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


ALERTS = {rule["alert"]: rule for rule in rules("alerts.rules.yml")}
RECORDED = {rule["record"]: rule["expr"] for rule in rules("recording.rules.yml")}


def exported(metrics: Metrics) -> dict[str, frozenset[str]]:
    """Every series of a worker with its own labels."""
    found: dict[str, frozenset[str]] = {}
    for family in metrics.registry.collect():
        if family.name.startswith("process_"):
            found[family.name + ("_total" if family.type == "counter" else "")] = frozenset()
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            found |= _series(metric._name, metric._type, frozenset(metric._labelnames))
        elif isinstance(metric, BatchHistogram):
            names = {sample.name for family in metric.collect() for sample in family.samples}
            found |= {name: frozenset({"le"} if name.endswith("_bucket") else ()) for name in names}
    return found | {"cgzsl_build_info": frozenset({"version", "worker", "client"})}


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


@cache
def known() -> dict[str, frozenset[str]]:
    """All series there are: those of the workers, and those that rules record, named after their labels."""
    return all_exported() | {name: frozenset(name.partition(":")[0].split("_")) for name in RECORDED}


def selectors(query: str) -> list[str]:
    """Every series a query selects, as `name` or `name{matchers}`."""
    return [found for found in _SELECTOR.findall(query) if found.partition("{")[0] in known()]


def unknown_in(query: str) -> set[str]:
    """Words of a query that are neither PromQL's, nor a series, nor a label of one it selects; and wrong matchers."""
    selected = [selector.partition("{") for selector in selectors(query)]
    labels = frozenset[str]().union(*(known()[name] for name, _, _ in selected))
    words = set(re.findall(r"(?<![\w.$])[a-zA-Z_:][\w:]*", _STRING.sub('""', query)))
    wrong = {
        f"{name}: {label}"
        for name, _, matchers in selected
        for label in _LABEL.findall(_STRING.sub('""', matchers))
        if label not in known()[name]
    }
    return (words - PROMQL - set(known()) - labels) | wrong
