"""Rows of three figures on one scale: seen and unseen at the ends of a line, their harmonic mean in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.markers import legend, legend_entry, marker
from stream_cgzsl.report.charts.plot import axis_of, drawing
from stream_cgzsl.report.charts.scale import Scale, linear
from stream_cgzsl.report.document import Figures
from stream_cgzsl.report.markup import el, percent
from stream_cgzsl.report.numbers import decimal, plus_minus, shorten

_ROW = 52.0  # pixels: a line of text and the markers below it
_FOOT = 6.0


@dataclass(frozen=True)
class Row:
    """Our figures are filled, published ones hollow. `other` is a second, hollow set in the same row."""

    name: str
    figures: Figures
    deviation: Figures | None = None
    other: Figures | None = None
    ours: bool = True
    strong: bool = False


def dumbbells(name: str, description: str, rows: Sequence[Row]) -> Element:
    scale = linear([value for row in rows for value in _reach(row)], ticks=5, most=100.0)
    height = _ROW * len(rows) + _FOOT
    parts = []
    for place, text in axis_of(scale).ticks:
        x = percent(place)
        parts.append(el("line", x1=x, x2=x, y1="0", y2="100%", class_="grid"))
        parts.append(el("text", text, x=x, y="100%", dy="20", class_="tick middle"))
    parts.append(el("text", "percent", x="100%", y="100%", dy="40", class_="words end"))
    for number, row in enumerate(rows):
        parts += _row(row, scale, number * _ROW, height)
    chart = drawing(name, description, parts, class_="dumbbells")
    chart.set("height", f"{height:g}")
    return chart


def _reach(row: Row) -> list[float]:
    """All values that the scale must include."""
    reach = []
    for value, deviation in zip(row.figures.values, _values(row.deviation), strict=True):
        if value is not None:
            reach += [value - (deviation or 0.0), value + (deviation or 0.0)]
    return reach + [value for value in _values(row.other) if value is not None]


def _row(row: Row, scale: Scale, top: float, height: float) -> list[Element]:
    label = el("tspan", el("title", row.name), shorten(row.name, 34), class_="strong" if row.strong else None)
    value = el("tspan", "mH ", plus_minus(row.figures.mH, row.deviation.mH if row.deviation else None), dx="10")
    parts = [el("text", label, value, x="0", y=f"{top + 18:g}", class_="row")]
    if row.strong:
        parts.insert(0, el("rect", x="-10", y=f"{top:g}", width="100%", height=f"{_ROW:g}", class_="stripe"))
    middle = (height - top - 36.0) / height
    if row.other is not None:
        parts += _marks(row.other, None, scale, middle, "hollow", f"{row.name}, the paper")
    parts += _marks(row.figures, row.deviation, scale, middle, "" if row.ours else "hollow", row.name)
    return parts


def _marks(figures: Figures, deviation: Figures | None, scale: Scale, y: float, style: str, tip: str) -> list[Element]:
    seen, unseen, harmonic = figures.values
    parts: list[Element] = []
    height = percent(1 - y)
    if seen is not None and unseen is not None:
        ends = {"x1": percent(scale(seen)), "x2": percent(scale(unseen))}
        parts.append(el("line", **ends, y1=height, y2=height, class_=f"span {style}".strip()))
    drawn = (("bar", "harmonic", harmonic), ("circle", "seen", seen), ("diamond", "unseen", unseen))
    deviations = _values(deviation)
    for (shape, kind, value), band in zip(drawn, (deviations[2], *deviations[:2]), strict=True):
        if value is None:
            continue
        if band:
            ends = {"x1": percent(scale(value - band)), "x2": percent(scale(value + band))}
            parts.append(el("line", **ends, y1=height, y2=height, class_=f"band {kind}"))
        parts.append(marker(shape, scale(value), y, f"{kind} {style}".strip(), f"{tip}; {kind} {decimal(value)}"))
    return parts


def _values(figures: Figures | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if figures is None else figures.values


def dumbbell_legend(hollow: str | None) -> Element:
    """`hollow` says what hollow markers mean, if there are any."""
    keys = [
        legend_entry("circle", "seen", "mSA, seen classes", line=False),
        legend_entry("diamond", "unseen", "mUA, unseen classes", line=False),
        legend_entry("bar", "harmonic", "mH, their harmonic mean", line=False),
    ]
    return legend(*keys, *([legend_entry("circle", "plainly hollow", hollow, line=False)] if hollow else []))
