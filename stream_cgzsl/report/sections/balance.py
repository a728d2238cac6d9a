"""Seen against unseen accuracy: an offset trades one for the other."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.curve import curve
from stream_cgzsl.report.charts.figure import Table, figure
from stream_cgzsl.report.document import CurvePoint, RunDocument
from stream_cgzsl.report.markup import el
from stream_cgzsl.report.numbers import decimal, percentage
from stream_cgzsl.report.sections.parts import Section, section
from stream_cgzsl.schemas import harmonic_mean


def balance(run: RunDocument) -> Section | None:
    """The curve of the last generation, and how well its offset was chosen."""
    if not run.curve:
        return None
    area = run.windows[-1].area if run.windows else None
    title = "Every trade-off that an offset can give"
    text = "The last generation, with an increasing offset added to the scores of unseen classes."
    here = run.curve_point
    point = f" The learned offset gives {percentage(here.seen)} seen, {percentage(here.unseen)} unseen." if here else ""
    rows = [[decimal(one.seen), decimal(one.unseen), decimal(_harmonic(one))] for one in run.curve]
    chart = curve(title, f"{text}{point} Area under the curve: {percentage(area)}.", run.curve, here, area)
    return section(
        "balance",
        "Seen against unseen",
        figure(title, text, [chart], Table("The curve, percent", ["seen", "unseen", "harmonic"], rows)),
        _chosen(run, here) if here else None,
    )


def _chosen(run: RunDocument, here: CurvePoint) -> Element:
    """What the learned offset loses against the best one, which only the test data reveal."""
    best = max(run.curve, key=_harmonic)
    lost = max(0.0, _harmonic(best) - _harmonic(here))
    return el(
        "div",
        el("h3", "How well the offset was chosen"),
        el(
            "p",
            "The learner chooses the offset without any test example. Its accuracy is ",
            el("strong", percentage(here.seen), class_="seen"),
            " on seen and ",
            el("strong", percentage(here.unseen), class_="unseen"),
            f" on unseen classes: a harmonic mean of {decimal(_harmonic(here))}.",
        ),
        el(
            "p",
            f"The best point of the curve, which only the test data reveal, has {decimal(_harmonic(best))}. "
            f"Not knowing it costs {decimal(lost)} points.",
        ),
        class_="column text",
    )


def _harmonic(point: CurvePoint) -> float:
    return harmonic_mean(point.seen, point.unseen) or 0.0
