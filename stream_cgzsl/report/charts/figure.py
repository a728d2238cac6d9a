"""A chart with its caption, its legend, and its figures as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from stream_cgzsl.report.markup import Node, el, percent


@dataclass(frozen=True)
class Table:
    """The first cell of a row names it. `at` is the horizontal position of each row in the chart, if it has one."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Node]]
    at: Sequence[float] = field(default_factory=tuple)


def table(content: Table, class_: str = "") -> Element:
    """The table in a box that scrolls sideways, so that the page never has to."""
    places: list[str | None] = [percent(place).removesuffix("%") for place in content.at]
    body = (
        el("tr", el("th", row[0], scope="row"), (el("td", cell) for cell in row[1:]), data_at=place)
        for row, place in zip(content.rows, places or [None] * len(content.rows), strict=True)
    )
    whole = el(
        "table",
        el("caption", content.caption),
        el("thead", el("tr", (el("th", text, scope="col") for text in content.head))),
        el("tbody", body),
    )
    box = f"scroll {class_}".strip()
    return el("div", whole, class_=box, tabindex="0", role="region", aria_label=content.caption)


def figure(
    title: str, text: Node, drawings: Sequence[Element], data: Table, legend: Element | None = None, class_: str = ""
) -> Element:
    """`title` states the finding, `text` what is drawn. Each of `drawings` has its own accessible name."""
    return el(
        "figure",
        el("figcaption", el("h3", title), el("p", text) if text else None),
        legend,
        el("div", (el("div", drawing, class_="plot") for drawing in drawings), class_="plots"),
        el("details", el("summary", "The figures as a table"), table(data)),
        class_=f"chart {class_}".strip(),
    )
