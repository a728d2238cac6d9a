"""Seen against unseen accuracy: every trade-off that an offset can give, and the one that was learned."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.markers import marker
from stream_cgzsl.report.charts.plot import axes, axis_of, drawing, path, stretched
from stream_cgzsl.report.charts.scale import linear
from stream_cgzsl.report.document import CurvePoint
from stream_cgzsl.report.markup import el, percent
from stream_cgzsl.report.numbers import decimal, percentage


def curve(
    name: str, description: str, points: Sequence[CurvePoint], here: CurvePoint | None, area: float | None
) -> Element:
    """The curve and the area under it, whose size is `area`; `here` is the point of the learned offset."""
    ordered = sorted(points, key=lambda point: (point.seen, -point.unseen))
    every = [*ordered, *([here] if here else [])]
    across = linear([0.0, *(point.seen for point in every)], zero=True, most=100.0)
    up = linear([0.0, *(point.unseen for point in every)], zero=True, most=100.0)
    places = [(across(point.seen), up(point.unseen)) for point in ordered]
    under = [(places[0][0], 0.0), *places, (places[-1][0], 0.0)] if places else []
    parts = [
        *axes(axis_of(across, "accuracy of seen classes, percent"), axis_of(up, "of unseen classes, percent"), True),
        stretched(path(under, "area", closed=True), path(places, "line harmonic")),
    ]
    if area is not None and places:
        words = ("area ", el("tspan", percentage(area), class_="strong"))
        parts.append(el("text", *words, x="8%", y="92%", class_="label harmonic"))
    if here is not None:
        parts += _here(across(here.seen), up(here.unseen), here)
    return drawing(name, description, parts, class_="curve")


def _here(x: float, y: float, point: CurvePoint) -> list[Element]:
    """Its marker, its label, and lines to both axes."""
    across, down = percent(x), percent(1 - y)
    tip = f"learned offset: {decimal(point.seen)} seen, {decimal(point.unseen)} unseen"
    side = ("-12", "label end") if x > 0.4 else ("12", "label")
    return [
        el("line", x1=across, x2=across, y1=down, y2="100%", class_="lead"),
        el("line", x1="0", x2=across, y1=down, y2=down, class_="lead"),
        marker("star", x, y, "harmonic", tip),
        el("text", "learned offset", x=across, y=down, dx=side[0], dy="22", class_=side[1]),
    ]
