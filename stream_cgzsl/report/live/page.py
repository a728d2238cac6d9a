"""The live page in its initial state, and its files."""

from __future__ import annotations

from importlib import resources
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.markers import marker_shapes
from stream_cgzsl.report.markup import Node, el, whole_page
from stream_cgzsl.report.page import ICON, asset, bar

_JAVASCRIPT = "text/javascript; charset=utf-8"


def _page() -> Element:
    return el(
        "html",
        el(
            "head",
            el("meta", charset="utf-8"),
            el("meta", name="viewport", content="width=device-width, initial-scale=1"),
            el("meta", name="color-scheme", content="light dark"),
            el("title", "stream-cgzsl, live"),
            el("link", rel="icon", href=ICON),
            el("link", rel="stylesheet", href="style.css"),
            el("link", rel="stylesheet", href="live.css"),
            el("script", src="page.js", defer=True),
            el("script", src="live.js", type="module"),
        ),
        el(
            "body",
            el("a", "Skip to the stream", href="#stream", class_="skip"),
            marker_shapes(),
            el("header", bar(el("p", "connecting", id="state", class_="state")), _opening()),
            el("main", *_sections(), id="stream", tabindex="-1"),
            el("footer", el("p", "Reads only the bus. Older windows are in the ledger.", id="foot")),
            el("p", class_="aside", id="news", role="status"),
            el("noscript", el("p", "This page needs JavaScript to follow the stream.", class_="note")),
        ),
        lang="en",
    )


def _opening() -> Element:
    return el(
        "div",
        el("p", "Live", id="where", class_="kicker"),
        el("h1", "stream-cgzsl", id="title"),
        el("p", "Waiting for the stream.", id="summary", class_="lead"),
        el("p", id="problem", class_="problem", hidden=True),
        el("dl", id="headline", class_="headline"),
        class_="opening",
    )


def _sections() -> list[Element]:
    kinds = el(
        "p",
        el("span", "seen", class_="chip seen"),
        " learned from examples ",
        el("span", "unseen", class_="chip"),
        " known by its description only",
        class_="meaning kinds",
    )
    return [
        _section(
            "classes",
            "Classes",
            el("div", kinds, el("ul", id="cells", class_="cells"), el("p", id="more", class_="meaning"), class_="most"),
            el("div", el("h3", "Changes"), el("ol", id="changes", class_="changes"), class_="rest"),
        ),
        _section(
            "accuracy",
            "Accuracy",
            _chart(
                "evaluated",
                "On the holdout",
                "Per-class mean accuracy of each generation on examples that are never trained on.",
            ),
            _chart("prequential", "Before learning", "Each window’s features, classified by the previous generation."),
        ),
        _section("windows", "Windows", _table("windows-table", "The latest windows, newest first")),
        _section("answers", "Predictions", _table("predictions-table", "The latest predictions, newest first")),
        _section("letters", "Dead letters", _table("letters-table", "The latest records that could not be used")),
    ]


def _section(name: str, title: str, *content: Node) -> Element:
    heading = f"{name}-title"
    return el(
        "section", el("h2", title, id=heading), el("div", *content, class_="grid"), id=name, aria_labelledby=heading
    )


def _chart(name: str, title: str, text: str) -> Element:
    return el(
        "figure",
        el("figcaption", el("h3", title), el("p", text)),
        el("div", el("p", "Nothing yet.", class_="meaning"), id=name, class_="plots"),
        class_="chart",
    )


def _table(name: str, caption: str) -> Element:
    whole = el("table", el("caption", caption), el("thead"), el("tbody"), id=name)
    return el("div", whole, class_="scroll figures", tabindex="0", role="region", aria_label=caption)


def _own(name: str) -> bytes:
    return resources.files("stream_cgzsl.report.live").joinpath(name).read_bytes()


FILES: dict[str, tuple[str, bytes]] = {
    "/": ("text/html; charset=utf-8", whole_page(_page()).encode()),
    "/style.css": ("text/css; charset=utf-8", asset("style.css").encode()),
    "/live.css": ("text/css; charset=utf-8", _own("live.css")),
    "/page.js": (_JAVASCRIPT, asset("page.js").encode()),
    "/live.js": (_JAVASCRIPT, _own("live.js")),
    "/view.js": (_JAVASCRIPT, _own("view.js")),
}
"""All files by path: content type and bytes."""
