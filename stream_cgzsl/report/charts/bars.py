"""Stacked bars over windows. Layers differ in colour and in pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.plot import Axis, axes, axis_of, drawing
from stream_cgzsl.report.charts.scale import linear
from stream_cgzsl.report.markup import el, percent

_GAP = 0.28  # as a fraction of the space for a bar


@dataclass(frozen=True)
class Layer:
    """`kind` is its class in the style sheet; `tips` are the tooltips of its bars."""

    kind: str
    values: Sequence[float]
    tips: Sequence[str]


def bar_centres(count: int) -> list[float]:
    """The centres of `count` bars on the axis."""
    return [(number + 0.5) / count for number in range(count)]


def bars(name: str, description: str, layers: Sequence[Layer], across: Axis, words: str) -> Element:
    """The first layer is at the bottom."""
    count = len(layers[0].values)
    scale = linear(
        [sum(column) for column in zip(*(layer.values for layer in layers), strict=True)], zero=True, ticks=4
    )
    width = (1 - _GAP) / count
    floors = [0.0] * count
    drawn = []
    for layer in layers:
        for number, (middle, value, tip) in enumerate(zip(bar_centres(count), layer.values, layer.tips, strict=True)):
            if value > 0:
                low, high = scale(floors[number]), scale(floors[number] + value)
                place = {"x": percent(middle - width / 2), "y": percent(1 - high)}
                size = {"width": percent(width), "height": percent(high - low)}
                drawn.append(el("rect", el("title", tip), **place, **size, class_=f"bar {layer.kind}"))
            floors[number] += value
    return drawing(name, description, axes(across, axis_of(scale, words)), drawn, class_="bars")
