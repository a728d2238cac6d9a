"""A report as one self-contained HTML file: it loads nothing from anywhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.markers import marker_shapes
from stream_cgzsl.report.document import RunDocument, StudyDocument
from stream_cgzsl.report.markup import Node, el, whole_page
from stream_cgzsl.report.sections import (
    accuracy,
    balance,
    examples,
    opening,
    paper,
    record,
    similarity,
    study,
    training,
)
from stream_cgzsl.report.sections.parts import Section
from stream_cgzsl.version import __version__

ICON = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M8 1l7 7-7 7-7-7z' fill='%23b1440e'/%3E%3Ccircle cx='8' cy='8' r='3' fill='%23fff'/%3E%3C/svg%3E"  # noqa: E501


def render(document: RunDocument | StudyDocument) -> str:
    """The page of a run or of a study. The same document gives the same bytes."""
    if isinstance(document, RunDocument):
        first = opening.opening(document)
        every = [
            examples.of_run(document),
            accuracy.accuracy(document),
            paper.paper(document),
            balance.balance(document),
            similarity.similarity(document),
            training.training(document),
            record.windows(document),
            record.reproduce(document),
        ]
    else:
        first = study.opening(document)
        every = [
            examples.few_shot(document),
            examples.of_rows(document),
            study.chart(document),
            study.rows(document),
            study.reproduce(document),
        ]
    return whole_page(_page(document.title, first, [part for part in every if part is not None]))


def _page(title: str, first: Sequence[Node], sections: Sequence[Section]) -> Element:
    style, script = asset("style.css"), asset("page.js")
    return el(
        "html",
        el(
            "head",
            el("meta", charset="utf-8"),
            el("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
            el("meta", name="viewport", content="width=device-width, initial-scale=1"),
            el("meta", name="color-scheme", content="light dark"),
            el("title", title),
            el("link", rel="icon", href=ICON),
            el("style", style),
        ),
        el(
            "body",
            el("a", "Skip to the result", href="#result-first", class_="skip"),
            marker_shapes(),
            el("header", bar(), el("div", *first, class_="opening"), _contents(sections)),
            el("main", (_section(part) for part in sections), id="result-first", tabindex="-1"),
            el(
                "footer", el("p", f"Made by stream-cgzsl {__version__}. This file is self-contained: it loads nothing.")
            ),
            el("script", script),
        ),
        lang="en",
    )


def bar(*more: Node) -> Element:
    """The bar at the top of every page. The button is shown only if scripts run."""
    button = el("button", "Dark", type="button", id="theme", hidden=True, aria_pressed="false")
    return el("div", el("p", "stream-cgzsl", class_="brand"), *more, button, class_="bar")


def _contents(sections: Sequence[Section]) -> Element:
    links = (el("li", el("a", part.title, href=f"#{part.name}")) for part in sections)
    return el("nav", el("ul", links), aria_label="Sections")


def _section(part: Section) -> Element:
    heading = f"{part.name}-title"
    content = el("div", *part.content, class_="grid")
    return el("section", el("h2", part.title, id=heading), content, id=part.name, aria_labelledby=heading)


def asset(name: str) -> str:
    return resources.files("stream_cgzsl.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing may be loaded, and only our own script may run: a hostile class name can do no harm."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
