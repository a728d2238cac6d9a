"""Seen against unseen: a model that favours what it learned is blind to what it was told, and the other way round."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.curve import curve
from stream_cgzsl.report.charts.figure import Table, figure
from stream_cgzsl.report.document import CurvePoint, RunDocument
from stream_cgzsl.report.markup import el
from stream_cgzsl.report.numbers import plain, share
from stream_cgzsl.report.sections.parts import Section, section


def balance(run: RunDocument) -> Section | None:
    """The curve of the last generation, and how well its own offset was chosen."""
    if not run.curve:
        return None
    area = run.windows[-1].area if run.windows else None
    title = "Every balance one offset can give"
    text = "The last generation, with more and more taken off the scores of learned classes."
    here = run.curve_point
    told = f" The learned offset gives {share(here.seen)} seen and {share(here.unseen)} unseen." if here else ""
    rows = [[plain(point.seen), plain(point.unseen), plain(_harmonic(point))] for point in run.curve]
    chart = curve(title, f"{text}{told} Area under the curve: {share(area)}.", run.curve, here, area)
    return section(
        "balance",
        "Seen against unseen",
        figure(title, text, [chart], Table("The curve, percent", ["seen", "unseen", "harmonic"], rows)),
        _chosen(run, here) if here else None,
    )


def _chosen(run: RunDocument, here: CurvePoint) -> Element:
    """What the learned offset gives away against the best one, which only the test data could tell."""
    best = max(run.curve, key=_harmonic)
    lost = max(0.0, _harmonic(best) - _harmonic(here))
    return el(
        "div",
        el("h3", "How well the offset was chosen"),
        el(
            "p",
            "The learner sets the balance by itself, without a test example. It recognises ",
            el("strong", share(here.seen), class_="seen"),
            " of learned and ",
            el("strong", share(here.unseen), class_="unseen"),
            f" of described classes: a harmonic mean of {plain(_harmonic(here))}.",
        ),
        el(
            "p",
            f"The best point of the curve, which only the test data could tell, has {plain(_harmonic(best))}. "
            f"Not knowing it costs {plain(lost)} points.",
        ),
        class_="column text",
    )


def _harmonic(point: CurvePoint) -> float:
    both = point.seen + point.unseen
    return 2 * point.seen * point.unseen / both if both else 0.0
