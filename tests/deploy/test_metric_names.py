"""Every metric of every worker, by name; the rules that Prometheus' users expect names to follow; and the pages."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from known_series import WORKERS, all_exported, exported
from prometheus_client import generate_latest

ROOT = Path(__file__).parents[2]

COMMON = {
    "cgzsl_build_info",
    "cgzsl_bus_errors_total",
    "cgzsl_classes",
    "cgzsl_generation_number",
    "cgzsl_lag_records",
    "cgzsl_last_success_timestamp_seconds",
    "cgzsl_ready",
    "cgzsl_rebalances_total",
}
OWN = {
    "learner": {
        "cgzsl_dead_letters_total",
        "cgzsl_device_memory_bytes",
        "cgzsl_generations_total",
        "cgzsl_learner_active",
        "cgzsl_loss",
        "cgzsl_open_window_timestamp_seconds",
        "cgzsl_prequential_accuracy_ratio",
        "cgzsl_projection_drift_radians",
        "cgzsl_published_bytes_total",
        "cgzsl_published_classes_total",
        "cgzsl_records_total",
        "cgzsl_refresh_seconds",
        "cgzsl_replayed_features_total",
        "cgzsl_state_bytes",
        "cgzsl_transactions_total",
        "cgzsl_window_phase_seconds",
        "cgzsl_windows_total",
    },
    "scorer": {
        "cgzsl_answer_seconds",
        "cgzsl_batch_seconds",
        "cgzsl_ledger_generation_number",
        "cgzsl_load_seconds",
        "cgzsl_margin",
        "cgzsl_predictions_total",
        "cgzsl_score",
        "cgzsl_swap_drift_radians",
    },
    "evaluator": {
        "cgzsl_accuracy_by_examples_ratio",
        "cgzsl_class_accuracy_ratio",
        "cgzsl_dead_letters_total",
        "cgzsl_evaluation_seconds",
        "cgzsl_evaluations_total",
        "cgzsl_forgetting_ratio",
        "cgzsl_holdout_accuracy_ratio",
        "cgzsl_holdout_records",
        "cgzsl_seen_unseen_area_ratio",
    },
}
NO_FIGURE_YET = {
    "learner": {"cgzsl_loss", "cgzsl_prequential_accuracy_ratio", "cgzsl_projection_drift_radians"},
    "scorer": {"cgzsl_swap_drift_radians"},
    "evaluator": {"cgzsl_class_accuracy_ratio"},
}
"""Gauges that have no value before the first windows. Counters are exported from the start."""


def families(worker: str) -> dict[str, str]:
    """The type of each family on the page of a fresh worker, by the name Prometheus knows it by."""
    text = generate_latest(WORKERS[worker]().registry).decode()  # type: ignore[call-arg]
    lines = [line.split() for line in text.splitlines() if line.startswith("# TYPE ")]
    return {name: kind for _, _, name, kind in lines if name.startswith("cgzsl_")}


@pytest.mark.parametrize("worker", WORKERS)
def test_these_are_all(worker: str) -> None:
    assert set(families(worker)) == COMMON | OWN[worker]


@pytest.mark.parametrize("worker", WORKERS)
def test_names_end_in_their_unit(worker: str) -> None:
    for name, kind in families(worker).items():
        assert name.endswith("_total") == (kind == "counter"), name
        assert not name.endswith(("_count", "_sum", "_bucket", "_created", "_milliseconds", "_percent")), name
        assert ("timestamp" in name) == name.endswith("_timestamp_seconds"), name


@pytest.mark.parametrize("worker", WORKERS)
def test_counters_are_exported_before_their_first_event(worker: str) -> None:
    metrics = WORKERS[worker]()  # type: ignore[call-arg]
    shown = {sample.name for family in metrics.registry.collect() for sample in family.samples}
    hidden = {name for name in exported(metrics) if name not in shown}
    assert hidden == NO_FIGURE_YET[worker]


@pytest.mark.parametrize("worker", WORKERS)
def test_promtool_finds_nothing_wrong(worker: str, promtool: str) -> None:
    text = generate_latest(WORKERS[worker]().registry)  # type: ignore[call-arg]
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_metrics_and_labels_named_in_the_pages_exist() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    named = [found for page in pages for found in re.findall(r"\b(cgzsl_\w+)(?:\{([^}]*)\})?", page.read_text())]
    series = {re.sub("_(bucket|sum|count)$", "", name): labels for name, labels in all_exported().items()}
    assert named
    for name, labels in named:
        assert name in series, name
        assert set(re.findall(r"(\w+)(?==|,|$)", labels)) <= series[name], f"{name}{{{labels}}}"
