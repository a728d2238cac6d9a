"""A study: many runs as rows of one table, and as one chart."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.dumbbells import Row, dumbbell_legend, dumbbells
from stream_cgzsl.report.charts.figure import Table, figure, table
from stream_cgzsl.report.charts.line import Series, lines
from stream_cgzsl.report.charts.plot import axis_of
from stream_cgzsl.report.charts.scale import linear, sweep
from stream_cgzsl.report.document import NOT_ZERO_SHOT, FewShotCurve, Figures, StudyDocument, StudyRow
from stream_cgzsl.report.markup import Node, el
from stream_cgzsl.report.numbers import MISSING, count, decimal, duration, percentage, plural, plus_minus
from stream_cgzsl.report.sections.paper import comparable
from stream_cgzsl.report.sections.parts import Section, command, facts, section

_TEXT = "Means over all windows, each as of its own time"


def opening(study: StudyDocument) -> list[Node]:
    return [
        el("p", f"{study.dataset}, {study.setting} setting, {study.extractor} features", class_="kicker"),
        el("h1", study.title),
        el("p", study.question, class_="lead"),
        el("p", summary(study), class_="answer"),
    ]


def summary(study: StudyDocument) -> str:
    """The row with the best harmonic mean, and its lead; in the trickle setting, by overall accuracy."""
    if study.curves:
        return _first_examples(study.curves)
    trickle = study.setting == "trickle"
    measure = "overall accuracy" if trickle else "harmonic mean"
    figures = [(row.overall if trickle else row.as_of.mH, row) for row in study.rows]
    ranked = sorted(
        ((figure, row) for figure, row in figures if figure is not None), key=lambda pair: pair[0], reverse=True
    )
    if not ranked:
        return f"No row has {'an' if trickle else 'a'} {measure}."
    best, row = ranked[0]
    deviation = row.deviation.mH if row.deviation and not trickle else None
    leader = f"“{row.label}” has the best {measure}, {plus_minus(best, deviation)}"
    if len(ranked) == 1:
        return f"{leader}."
    second, other = ranked[1]
    return f"{leader}, {decimal(best - second)} points ahead of “{other.label}”."


def _first_examples(curves: Sequence[FewShotCurve]) -> str:
    """Which learner does best with the first examples of a class, and its lead."""
    place = next((i for i, shot in enumerate(curves[0].shots) if shot.k), 0)
    k = curves[0].shots[place].k
    ranked = sorted(((curve.shots[place].given, curve.learner) for curve in curves), reverse=True)
    best, learner = ranked[0]
    start = f"With {plural(k, 'example')} per class, “{learner}” reaches {percentage(best)}"
    if len(ranked) == 1:
        return f"{start}."
    return f"{start}, {decimal(best - ranked[1][0])} points ahead of “{ranked[1][1]}”."


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
    text = f"{_TEXT}; vertical lines are deviations over seeds." if any(row.deviation for row in rows) else f"{_TEXT}."
    drawn = lines(title, text, series, at, axis_of(across, study.x_label or ""), linear(reach, most=100.0), "percent")
    data = Table(
        title, [study.x_label or "x", "mSA", "mUA", "mH"], [[f"{x:g}", *_means(row)] for x, row in ordered], at
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
        plus_minus(row.as_of.mSA, deviation.mSA),
        plus_minus(row.as_of.mUA, deviation.mUA),
        plus_minus(row.as_of.mH, deviation.mH),
    ]


def rows(study: StudyDocument) -> Section | None:
    if not study.rows:
        return None
    papers = any(row.paper is not None for row in study.rows)
    trickle = study.setting == "trickle"
    head = ["row", "runs", *(["overall"] if trickle else []), "mSA", "mUA", "mH", "recalculated mSA / mUA / mH"]
    head += ["paper mSA / mUA / mH"] if papers else []
    head += ["forgetting", "area", "seconds", "digest"]
    text = "As of each window (mean ± deviation over seeds), and recalculated at the end, as in the paper."
    text += f" {NOT_ZERO_SHOT[study.setting]}" if study.setting in NOT_ZERO_SHOT else ""
    note = f"{text} {comparable(study.extractor, study.paper_extractor)}" if papers else text
    body = [_cells(row, papers, trickle) for row in study.rows]
    return section(
        "rows",
        "Every row",
        el("p", note, class_="note"),
        table(Table("All rows; accuracies, forgetting and area in percent", head, body), "figures"),
    )


def _cells(row: StudyRow, papers: bool, trickle: bool) -> list[Node]:
    cells: list[Node] = [row.label, count(row.runs), *([decimal(row.overall)] if trickle else []), *_means(row)]
    cells += [_slashed(row.recalculated), *([_slashed(row.paper)] if papers else [])]
    digest = el("code", row.digest[:16], title=row.digest) if row.digest else MISSING
    return [*cells, decimal(row.forgetting), decimal(row.area), duration(row.seconds), digest]


def _slashed(figures: Figures | None) -> str:
    return MISSING if figures is None else " / ".join(map(decimal, figures.values))


def reproduce(study: StudyDocument) -> Section:
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
