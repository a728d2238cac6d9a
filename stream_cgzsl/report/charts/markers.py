"""Markers that differ in shape, not only in colour."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from stream_cgzsl.report.markup import Node, el, percent

_SHAPES = {
    "circle": el("circle", r="4.5"),
    "diamond": el("path", d="M0-6L6 0L0 6L-6 0Z"),
    "square": el("rect", x="-4", y="-4", width="8", height="8"),
    "triangle": el("path", d="M0-6L6 5L-6 5Z"),
    "bar": el("rect", x="-2.5", y="-9", width="5", height="18"),
    "cross": el("path", d="M-4-4L4 4M-4 4L4-4"),
    "star": el("path", d="M0-7L2 -2.2L7-2.2L3 1L4.5 6L0 3L-4.5 6L-3 1L-7-2.2L-2-2.2Z"),
}


def marker_shapes() -> Element:
    """The shapes and patterns that the charts of a page refer to. Needed once per page."""
    hatch = el(
        "pattern",
        el("path", d="M-1 1L1-1M0 6L6 0M5 7L7 5", class_="hatching"),
        id="hatch",
        width="6",
        height="6",
        patternUnits="userSpaceOnUse",
    )
    return el(
        "svg",
        el("defs", (el("g", shape, id=f"mark-{name}") for name, shape in _SHAPES.items()), hatch),
        class_="shapes",
        width="0",
        height="0",
        aria_hidden="true",
        focusable="false",
    )


def marker(shape: str, x: float, y: float, class_: str, tip: str | None = None) -> Element:
    """A shape at a position in fractions of width and height, from the lower left. `tip` is its tooltip."""
    inside: Node = el("title", tip) if tip else None
    return el("use", inside, href=f"#mark-{shape}", x=percent(x), y=percent(1 - y), class_=f"mark {class_}")


def legend_entry(shape: str, class_: str, text: str, line: bool = True) -> Element:
    """A marker as it is drawn, and its meaning."""
    drawing = el(
        "svg",
        el("line", x1="0", x2="28", y1="9", y2="9", class_=f"line {class_}") if line else None,
        el("use", href=f"#mark-{shape}", x="14", y="9", class_=f"mark {class_}"),
        width="28",
        height="18",
        aria_hidden="true",
        focusable="false",
    )
    return el("li", drawing, text)


def legend(*keys: Element) -> Element:
    return el("ul", *keys, class_="legend")
