"""The reading of queries that the tests of rules and dashboards stand on."""

from __future__ import annotations

import pytest
from promql import Asked, asked, unknown_in

KNOWN = {"a_total": frozenset({"job", "kind"}), "b": frozenset({"job"})}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("up", Asked([("up", frozenset())], frozenset())),
        (
            'sum by (job, x) (rate(a_total{kind="k", job=~"j.*"}[5m])) / 60',
            Asked([("a_total", frozenset({"kind", "job"}))], frozenset({"job", "x"})),
        ),
        (
            "time() - max by (s) (a > 0) > 86400 unless on (s) l:b:sum offset 1h",
            Asked([("a", frozenset()), ("l:b:sum", frozenset())], frozenset({"s"})),
        ),
        ("0 * b * on (i) group_left (w) c{}", Asked([("c", frozenset()), ("b", frozenset())], frozenset({"i", "w"}))),
    ],
)
def test_series_and_labels_are_found(query: str, expected: Asked) -> None:
    assert asked(query) == expected


@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ('sum by (kind) (rate(a_total{kind="k"}[5m])) + on (job) b', []),
        ("rate(a[5m])", ["a"]),
        ('b{kind="k"}', ["b: kind"]),
        ("sum by (kind) (b)", ["by kind"]),
    ],
)
def test_what_there_is_not_is_named(query: str, unknown: list[str]) -> None:
    assert unknown_in(query, KNOWN) == unknown
