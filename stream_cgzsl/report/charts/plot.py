"""What all charts share: a drawing of any width with its axes, its grid and its accessible name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.scale import Scale
from stream_cgzsl.report.markup import Node, el, percent, spell
from stream_cgzsl.report.numbers import significant

Point = tuple[float, float]
"""A position in fractions of width and height, from the lower left."""

_LABEL_GAP = 17.0 / 240.0  # the height of a line of text over that of a drawing, as in the style sheet


@dataclass(frozen=True)
class Axis:
    """Ticks as (position, text), and the label of the axis."""

    ticks: Sequence[tuple[float, str]]
    words: str = ""


def axis_of(scale: Scale, words: str = "") -> Axis:
    return Axis([(scale(tick), significant(tick)) for tick in scale.ticks], words)


def drawing(name: str, description: str, *parts: Node, class_: str = "") -> Element:
    """A drawing with a name and a description for screen readers."""
    return el(
        "svg",
        el("title", name),
        el("desc", description),
        *parts,
        class_=f"drawing {class_}".strip(),
        role="img",
        focusable="false",
    )


def axes(across: Axis, up: Axis, upright: bool = False) -> list[Element]:
    """Grid lines, ticks and axis labels. `upright` also draws vertical grid lines."""
    parts = []
    for place, text in up.ticks:
        y = percent(1 - place)
        parts.append(el("line", x1="0", x2="100%", y1=y, y2=y, class_="grid" if place > 0 else "base"))
        parts.append(el("text", text, x="0", y=y, dx="-8", dy="0.35em", class_="tick end"))
    for place, text in across.ticks:
        x = percent(place)
        if upright:
            parts.append(el("line", x1=x, x2=x, y1="0", y2="100%", class_="grid"))
        parts.append(el("text", text, x=x, y="100%", dy="20", class_="tick middle"))
    if up.words:
        parts.append(el("text", up.words, x="0", y="0", dx="-8", dy="-14", class_="words"))
    if across.words:
        parts.append(el("text", across.words, x="100%", y="100%", dy="40", class_="words end"))
    return parts


def stretched(*parts: Node) -> Element:
    """A canvas for lines: 100 by 100 units, whatever the size of the drawing; strokes keep their width."""
    return inner("0 0 100 100", *parts, preserveAspectRatio="none")


def inner(view: str, *parts: Node, **attributes: str) -> Element:
    """A nested drawing with its own units that fills the outer one and is hidden from screen readers."""
    return el("svg", *parts, viewBox=view, width="100%", height="100%", aria_hidden="true", **attributes)


def path(points: Iterable[Point | None], class_: str, closed: bool = False) -> Element:
    """A line through points, with gaps at None. For `stretched`."""
    steps: list[str] = []
    pen = "M"
    for point in points:
        if point is None:
            pen = "M"
            continue
        steps.append(f"{pen}{spell(100.0 * point[0])} {spell(100.0 - 100.0 * point[1])}")
        pen = "L"
    return el("path", d="".join(steps) + ("Z" if closed else ""), class_=class_)


def spread_out(places: Sequence[float], gap: float = _LABEL_GAP) -> list[float]:
    """The positions of labels, moved apart to a distance of `gap`, in the same order and inside [0, 1]."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    floor = 0.0
    for i in order:
        moved[i] = max(moved[i], floor)
        floor = moved[i] + gap
    ceiling = 1.0 + gap / 2
    for i in reversed(order):
        moved[i] = min(moved[i], ceiling)
        ceiling = moved[i] - gap
    return moved
