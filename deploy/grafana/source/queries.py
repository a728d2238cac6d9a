"""Pieces of PromQL that several panels use."""

from __future__ import annotations

RATE = "[$__rate_interval]"
OF_WORKER = "* on (job, instance) group_left (worker) cgzsl_build_info{}"
OF_SCORER = 'and on (job, instance) cgzsl_build_info{worker="scorer"}'


def mean(name: str, by: str, matcher: str = "") -> str:
    """The mean of a histogram over the last hour: windows and generations come minutes or hours apart."""
    total, count = (f"sum by ({by}) (increase({name}_{part}{{{matcher}}}[1h]))" for part in ("sum", "count"))
    return f"{total} / {count}"


def quantile(q: float, name: str, by: str) -> str:
    return f"histogram_quantile({q}, sum by ({by}, le) (rate({name}_bucket{{}}{RATE})))"


def quantiles(name: str) -> list[tuple[str, str]]:
    """Median, 90th and 99th percentile of a stream's histogram, with their legends."""
    shown = ((0.5, "median"), (0.9, "90 %"), (0.99, "99 %"))
    return [(quantile(q, name, "stream"), f"{{{{stream}}}} {label}") for q, label in shown]
