"""The paper's figures beside ours, and what must be known before they are compared."""

from __future__ import annotations

from stream_cgzsl.report.charts.dumbbells import Row, dumbbell_legend, dumbbells
from stream_cgzsl.report.charts.figure import Table, figure
from stream_cgzsl.report.document import PaperRow, RunDocument
from stream_cgzsl.report.markup import el
from stream_cgzsl.report.numbers import plain
from stream_cgzsl.report.sections.parts import Section, section

_OWN = "The paper’s own system"  # which its tables call "Ours"


def beside_paper(run: RunDocument) -> Section | None:
    """None where the paper has no figures for the data set and setting."""
    known = [row for row in run.paper if any(value is not None for value in _three(row))]
    if not known:
        return None
    ours = Row(f"{run.learner}, this run", run.recalculated, strong=True)
    theirs = [Row(_OWN if row.system == "Ours" else row.system, row.figures, ours=False) for row in known]
    rows = sorted([ours, *theirs], key=lambda row: -1.0 if row.figures.mH is None else row.figures.mH, reverse=True)
    title = "This run and the systems of the paper"
    text = "Recalculated at the end, as the paper counts; ordered by mH."
    table = Table(
        "mSA, mUA and mH in percent, recalculated",
        ["system", "features", "mSA", "mUA", "mH"],
        [
            [row.name, run.extractor if row is ours else run.paper_extractor, *(plain(value) for value in _three(row))]
            for row in rows
        ],
    )
    chart = dumbbells(title, text, rows)
    return section(
        "paper",
        "Beside the paper",
        el("p", comparable(run.extractor, run.paper_extractor), class_="note"),
        figure(title, text, [chart], table, dumbbell_legend("hollow: printed in the paper"), "wide"),
    )


def comparable(ours: str, theirs: str) -> str:
    """Whether figures of these two feature extractors compare at all."""
    if ours == theirs:
        return f"Both use {ours} features, so the figures compare."
    return (
        f"Ours are {ours} features, the paper’s are {theirs} features. "
        "Better features alone give better figures, so a difference says little about the method."
    )


def _three(row: PaperRow | Row) -> tuple[float | None, float | None, float | None]:
    return row.figures.mSA, row.figures.mUA, row.figures.mH
