"""A study: many runs as rows of one table, and as one chart."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.dumbbells import Row, dumbbell_legend, dumbbells
from stream_cgzsl.report.charts.figure import Table, figure, table
from stream_cgzsl.report.charts.line import Series, lines
from stream_cgzsl.report.charts.plot import axis_of
from stream_cgzsl.report.charts.scale import linear, sweep
from stream_cgzsl.report.document import Figures, StudyDocument, StudyRow
from stream_cgzsl.report.markup import Node, el
from stream_cgzsl.report.numbers import NONE, count, plain, seconds, spread
from stream_cgzsl.report.sections.beside_paper import comparable
from stream_cgzsl.report.sections.parts import Section, command, facts, section

_TEXT = "Means of all windows, each as of its own time"


def opening(study: StudyDocument) -> list[Node]:
    return [
        el("p", f"{study.dataset}, {study.setting} setting, {study.extractor} features", class_="kicker"),
        el("h1", study.title),
        el("p", study.question, class_="lead"),
        el("p", reading(study), class_="answer"),
    ]


def reading(study: StudyDocument) -> str:
    """The row with the best harmonic mean, and its lead."""
    ranked = sorted(
        ((row.as_of.mH, row) for row in study.rows if row.as_of.mH is not None), key=lambda pair: pair[0], reverse=True
    )
    if not ranked:
        return "No row has a harmonic mean."
    best, row = ranked[0]
    told = f"“{row.label}” has the best harmonic mean, {spread(best, row.deviation.mH if row.deviation else None)}"
    if len(ranked) == 1:
        return f"{told}."
    second, other = ranked[1]
    return f"{told}, {plain(best - second)} points before “{other.label}”."


def chart(study: StudyDocument) -> Section | None:
    if not study.rows:
        return None
    swept = [row for row in study.rows if row.x is not None]
    return section("result", "The result", _lines(study, swept) if len(swept) > 1 else _rows(study))


def _rows(study: StudyDocument) -> Element:
    rows = [Row(row.label, row.as_of, row.deviation, row.paper) for row in study.rows]
    title = "mSA, mUA and mH of every row"
    text = f"{_TEXT}; bands are deviations over seeds." if any(row.deviation for row in rows) else f"{_TEXT}."
    hollow = (
        f"hollow: printed in the paper, {study.paper_extractor} features" if any(row.other for row in rows) else None
    )
    data = Table(title, ["row", "mSA", "mUA", "mH"], [[row.label, *_means(row)] for row in study.rows])
    return figure(title, text, [dumbbells(title, text, rows)], data, dumbbell_legend(hollow), "wide")


def _lines(study: StudyDocument, rows: Sequence[StudyRow]) -> Element:
    ordered = sorted(((row.x, row) for row in rows if row.x is not None), key=lambda pair: pair[0])
    across = sweep([x for x, _ in ordered])
    series = [
        Series("seen", "seen", "circle", *_values([row for _, row in ordered], "mSA")),
        Series("unseen", "unseen", "diamond", *_values([row for _, row in ordered], "mUA")),
        Series("harmonic", "harmonic", "square", *_values([row for _, row in ordered], "mH")),
    ]
    reach = [
        value + sign * (deviation or 0.0)
        for one in series
        for value, deviation in zip(one.values, one.deviations, strict=True)
        if value is not None
        for sign in (-1, 1)
    ]
    at = [across(x) for x, _ in ordered]
    title = f"mSA, mUA and mH by {study.x_label or 'value'}"
    text = f"{_TEXT}; upright lines are deviations over seeds." if any(row.deviation for row in rows) else f"{_TEXT}."
    drawn = lines(title, text, series, at, axis_of(across, study.x_label or ""), linear(reach, most=100.0), "percent")
    data = Table(
        title,
        [study.x_label or "x", "mSA", "mUA", "mH"],
        [[f"{x:g}", *_means(row)] for x, row in ordered],
        at,
    )
    return figure(title, text, [drawn], data, class_="wide")


def _values(rows: Sequence[StudyRow], name: str) -> tuple[list[float | None], list[float | None]]:
    return (
        [getattr(row.as_of, name) for row in rows],
        [None if row.deviation is None else getattr(row.deviation, name) for row in rows],
    )


def _means(row: StudyRow) -> list[str]:
    deviation = row.deviation or Figures(mSA=None, mUA=None, mH=None)
    return [
        spread(row.as_of.mSA, deviation.mSA),
        spread(row.as_of.mUA, deviation.mUA),
        spread(row.as_of.mH, deviation.mH),
    ]


def rows(study: StudyDocument) -> Section | None:
    if not study.rows:
        return None
    papers = any(row.paper is not None for row in study.rows)
    head = ["row", "runs", "mSA", "mUA", "mH", "recalculated mSA / mUA / mH"]
    head += ["paper mSA / mUA / mH"] if papers else []
    head += ["forgetting", "area", "seconds", "digest"]
    text = (
        "As of each window (mean ± deviation over seeds), and recalculated at the end, which is how the paper counts."
    )
    note = f"{text} {comparable(study.extractor, study.paper_extractor)}" if papers else text
    body = [_cells(row, papers) for row in study.rows]
    return section(
        "rows",
        "Every row",
        el("p", note, class_="note"),
        table(Table("All rows; accuracies, forgetting and area in percent", head, body), "figures"),
    )


def _cells(row: StudyRow, papers: bool) -> list[Node]:
    cells: list[Node] = [row.label, count(row.runs), *_means(row)]
    cells += [_slashed(row.recalculated), *([_slashed(row.paper)] if papers else [])]
    digest = el("code", row.digest[:16], title=row.digest) if row.digest else NONE
    return [*cells, plain(row.forgetting), plain(row.area), seconds(row.seconds), digest]


def _slashed(figures: Figures | None) -> str:
    return NONE if figures is None else f"{plain(figures.mSA)} / {plain(figures.mUA)} / {plain(figures.mH)}"


def again(study: StudyDocument) -> Section:
    settings = [
        el("details", el("summary", row.label), facts(row.settings, f"Settings of {row.label}"))
        for row in study.rows
        if row.settings
    ]
    return section(
        "again",
        "Run it again",
        command(study.command, "The same command in the same environment gives the same figures."),
        el("div", el("h3", "Settings of each row"), settings, class_="column") if settings else None,
        el("div", el("h3", "Environment"), facts(study.environment, "Environment"), class_="column"),
    )
