"""The paper's figures next to ours, and whether they are comparable."""

from __future__ import annotations

from stream_cgzsl.report.charts.dumbbells import Row, dumbbell_legend, dumbbells
from stream_cgzsl.report.charts.figure import Table, figure
from stream_cgzsl.report.document import NOT_ZERO_SHOT, RunDocument
from stream_cgzsl.report.markup import el
from stream_cgzsl.report.numbers import decimal
from stream_cgzsl.report.sections.parts import Section, section

_OWN = "The paper’s own system"  # which its tables call "Ours"


def paper(run: RunDocument) -> Section | None:
    """None if the paper has no figures for the data set and setting."""
    known = [row for row in run.paper if any(value is not None for value in row.figures.values)]
    if not known:
        return None
    ours = Row(f"{run.learner}, this run", run.recalculated, strong=True)
    theirs = [Row(_OWN if row.system == "Ours" else row.system, row.figures, ours=False) for row in known]
    rows = sorted([ours, *theirs], key=lambda row: -1.0 if row.figures.mH is None else row.figures.mH, reverse=True)
    title = "This run and the systems of the paper"
    text = f"Recalculated at the end, as in the paper; ordered by mH. {NOT_ZERO_SHOT.get(run.setting, '')}".strip()
    table = Table(
        "mSA, mUA and mH in percent, recalculated",
        ["system", "features", "mSA", "mUA", "mH"],
        [
            [row.name, run.extractor if row is ours else run.paper_extractor, *map(decimal, row.figures.values)]
            for row in rows
        ],
    )
    chart = dumbbells(title, text, rows)
    return section(
        "paper",
        "Compared with the paper",
        el("p", comparable(run.extractor, run.paper_extractor), class_="note"),
        figure(title, text, [chart], table, dumbbell_legend("hollow: printed in the paper"), "wide"),
    )


def comparable(ours: str, theirs: str) -> str:
    """Whether figures of these two feature extractors are comparable."""
    if ours == theirs:
        return f"Both use {ours} features, so the figures are comparable."
    return (
        f"This run uses {ours} features, the paper {theirs} features. "
        "Better features alone give better figures, so a difference says little about the method."
    )
