"""Lines over windows, or over the values of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.markers import marker
from stream_cgzsl.report.charts.plot import Axis, Point, axes, axis_of, drawing, path, spread_out, stretched
from stream_cgzsl.report.charts.scale import Scale
from stream_cgzsl.report.markup import el, percent
from stream_cgzsl.report.numbers import decimal

_MOST_MARKERS = 40  # a line with more points has no markers


@dataclass(frozen=True)
class Series:
    """One line. `kind` is its class in the style sheet (colour and dashes), `shape` its markers."""

    name: str
    kind: str
    shape: str
    values: Sequence[float | None]
    deviations: Sequence[float | None] = field(default_factory=tuple)


def lines(
    name: str,
    description: str,
    series: Sequence[Series],
    at: Sequence[float],
    across: Axis,
    scale: Scale,
    words: str = "",
    decimals: int = 1,
    marks: bool = True,
) -> Element:
    """The values of each series at the positions `at`; each line ends in its name and its last value.

    Without `marks`, only isolated points and the last one have markers.
    """
    drawn = [(one, _points(one.values, at, scale)) for one in series]
    shown = [(one, points) for one, points in drawn if any(points)]
    return drawing(
        name,
        description,
        axes(across, axis_of(scale, words)),
        stretched(path(points, f"line {one.kind}") for one, points in shown),
        [whisker for one, _ in shown for whisker in _whiskers(one, at, scale)],
        [
            item
            for one, points in shown
            for item in _marks(one, points, decimals, marks and len(points) <= _MOST_MARKERS)
        ],
        _labels(shown, decimals),
        class_="lines",
    )


def _points(values: Sequence[float | None], at: Sequence[float], scale: Scale) -> list[Point | None]:
    return [None if value is None else (x, scale(value)) for x, value in zip(at, values, strict=True)]


def _marks(one: Series, points: Sequence[Point | None], decimals: int, every: bool) -> list[Element]:
    """All markers, or only those of the last point and of isolated points."""
    last = max(i for i, point in enumerate(points) if point)
    around = [None, *points, None]
    return [
        marker(one.shape, *point, one.kind, f"{one.name} {decimal(value, decimals)}")
        for i, (point, value) in enumerate(zip(points, one.values, strict=True))
        if point and value is not None and (every or i == last or not (around[i] or around[i + 2]))
    ]


def _whiskers(one: Series, at: Sequence[float], scale: Scale) -> list[Element]:
    found = []
    for x, value, deviation in zip(at, one.values, one.deviations or [None] * len(at), strict=True):
        if value is not None and deviation:
            low, high = (percent(1 - min(1.0, max(0.0, scale(value + sign * deviation)))) for sign in (-1, 1))
            found.append(el("line", x1=percent(x), x2=percent(x), y1=low, y2=high, class_=f"whisker {one.kind}"))
    return found


def _labels(shown: Sequence[tuple[Series, Sequence[Point | None]]], decimals: int) -> list[Element]:
    """At the right end, without overlaps."""
    ends = [[point for point in points if point][-1] for _, points in shown]
    heights = spread_out([y for _, y in ends])
    found = []
    for (one, _), height in zip(shown, heights, strict=True):
        value = [value for value in one.values if value is not None][-1]
        words = el("tspan", one.name), " ", el("tspan", decimal(value, decimals), class_="strong")
        place = {"x": "100%", "y": percent(1 - height)}
        found.append(el("text", *words, **place, dx="12", dy="0.35em", class_=f"label {one.kind}"))
    return found
