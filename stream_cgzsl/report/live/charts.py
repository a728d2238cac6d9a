"""The charts of the live page, drawn by the same code as those of a report. They contain no text from the stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stream_cgzsl.report.charts.line import Series, lines
from stream_cgzsl.report.charts.plot import Axis
from stream_cgzsl.report.charts.scale import evenly_spaced, linear, pick_labels
from stream_cgzsl.report.markup import fragment
from stream_cgzsl.schemas import Evaluation

_SHAPES = {"seen": "circle", "unseen": "diamond", "harmonic": "square"}


def evaluated(evaluations: Iterable[Evaluation]) -> str | None:
    """Holdout accuracies by generation; None while there are none."""
    every = [one for one in evaluations if one.seen is not None or one.unseen is not None]
    values = {
        "seen": [one.seen for one in every],
        "unseen": [one.unseen for one in every],
        "harmonic": [one.harmonic for one in every],
    }
    return _chart("Accuracy on the holdout", "generation", [one.generation for one in every], values)


def prequential(windows: Iterable[Mapping[str, Any]]) -> str | None:
    """How each window's features were classified before they were learned; None while there is no such window."""
    every = [w for w in windows if w["prequential_seen"] is not None or w["prequential_unseen"] is not None]
    values = {"seen": [w["prequential_seen"] for w in every], "unseen": [w["prequential_unseen"] for w in every]}
    return _chart("Accuracy before learning", "window", [w["number"] for w in every], values)


def _chart(name: str, words: str, numbers: Sequence[int], values: Mapping[str, Sequence[float | None]]) -> str | None:
    if not numbers:
        return None
    at = evenly_spaced(len(numbers))
    across = Axis([(at[i], str(numbers[i])) for i in pick_labels(numbers)], words)
    series = [
        Series(kind, kind, _SHAPES[kind], [None if fraction is None else 100.0 * fraction for fraction in fractions])
        for kind, fractions in values.items()
    ]
    known = [value for one in series for value in one.values if value is not None]
    text = f"Accuracy on seen and unseen classes in percent, by {words}, from {numbers[0]} to {numbers[-1]}."
    return fragment(lines(name, text, series, at, across, linear(known, most=100.0), "percent"))
