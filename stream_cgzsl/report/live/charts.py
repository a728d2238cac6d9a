"""The charts of the live page: drawings of numbers alone, made by the same code as those of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stream_cgzsl.report.charts.line import Series, lines
from stream_cgzsl.report.charts.plot import Axis
from stream_cgzsl.report.charts.scale import linear, named, places
from stream_cgzsl.report.markup import fragment
from stream_cgzsl.schemas import Evaluation

_SHAPES = {"seen": "circle", "unseen": "diamond", "harmonic": "square"}


def evaluated(evaluations: Iterable[Evaluation]) -> str | None:
    """Holdout accuracies by generation; None while there is none."""
    every = [one for one in evaluations if one.seen is not None or one.unseen is not None]
    values = {
        "seen": [one.seen for one in every],
        "unseen": [one.unseen for one in every],
        "harmonic": [one.harmonic for one in every],
    }
    return _chart("Accuracy on the holdout", "generation", [one.generation for one in every], values)


def prequential(windows: Iterable[Mapping[str, Any]]) -> str | None:
    """How each window's features were classified before they were learned; None while no window says so."""
    every = [w for w in windows if w["prequential_seen"] is not None or w["prequential_unseen"] is not None]
    values = {"seen": [w["prequential_seen"] for w in every], "unseen": [w["prequential_unseen"] for w in every]}
    return _chart("Accuracy before learning", "window", [w["number"] for w in every], values)


def _chart(name: str, words: str, numbers: Sequence[int], values: Mapping[str, Sequence[float | None]]) -> str | None:
    if not numbers:
        return None
    at = places(len(numbers))
    across = Axis([(at[i], str(numbers[i])) for i in named(numbers)], words)
    series = [
        Series(kind, kind, _SHAPES[kind], [None if share is None else 100.0 * share for share in shares])
        for kind, shares in values.items()
    ]
    known = [value for one in series for value in one.values if value is not None]
    told = f"Percent of seen and unseen classes by {words}, from {numbers[0]} to {numbers[-1]}."
    return fragment(lines(name, told, series, at, across, linear(known, most=100.0), "percent"))
