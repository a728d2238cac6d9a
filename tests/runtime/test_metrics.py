"""Every counter is exported as zero from the start, so that a rate is right from the first event."""

from __future__ import annotations

import pytest
from ledgers import window_record
from prometheus_client import CollectorRegistry

from stream_cgzsl.runtime.metrics import LearnerMetrics
from stream_cgzsl.schemas import Range

TRAINING = ("marker", "count", "event-time", "max-age")
COMMITTED = [
    *(("train", policy) for policy in TRAINING),
    *(("describe", policy) for policy in ("describe", "rebuild")),
    *(("rollback", policy) for policy in ("rollback", "accept-loss")),
    *(("failed", policy) for policy in (*TRAINING, "describe", "rebuild", "rollback")),
]
"""The kinds of windows that learners commit, each with the policies that close them."""


def counters(registry: CollectorRegistry) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    return {
        (sample.name, tuple(sorted(sample.labels.items())))
        for family in registry.collect()
        if family.type == "counter"
        for sample in family.samples
    }


@pytest.mark.parametrize(("kind", "policy"), COMMITTED)
def test_a_window_adds_no_new_counter(kind: str, policy: str) -> None:
    metrics = LearnerMetrics()
    before = counters(metrics.registry)
    span = Range(start=3, end=9, lost=1, accepted=1, duplicate=1, late=1, dead={"not-json": 2, "unknown-class": 1})
    ranges = {role: {0: span} for role in ("attributes", "features", "control")}
    metrics.committed(window_record(kind=kind, policy=policy, reason="for people", ranges=ranges))
    assert counters(metrics.registry) == before
    assert metrics.registry.get_sample_value("cgzsl_windows_total", {"kind": kind, "policy": policy}) == 1
