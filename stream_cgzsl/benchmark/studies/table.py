"""A study as a table that fits a terminal; its report and its JSON have more."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from stream_cgzsl.report.document import FewShotCurve, StudyDocument, StudyRow

GROUPS = {"seen": "learned before", "given": "with k examples", "rest": "still unseen"}
"""The classes of a few-shot study, by the fields of `Shot`."""


def study_table(document: StudyDocument) -> Table:
    """mSA, mUA and mH as of each window, mH recalculated, and the paper's mH where it has one.

    A few-shot study has a column for each k instead.
    """
    title = f"{document.title}\n{document.dataset}, {document.extractor}, {document.setting}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    if document.curves:
        _add_curves(table, document.curves)
        return table
    table.add_column("row")
    columns = [_cells(row, document.setting == "trickle") for row in document.rows]
    shown = [name for name in columns[0] if any(cells[name] for cells in columns)] if columns else []
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)
    for row, cells in zip(document.rows, columns, strict=True):
        table.add_row(row.label, *(cells[name] or "-" for name in shown))
    return table


def _add_curves(table: Table, curves: Sequence[FewShotCurve]) -> None:
    """Three rows per learner: the accuracies of each group of classes."""
    table.add_column("learner")
    table.add_column("classes")
    for shot in curves[0].shots:
        table.add_column(f"k={shot.k}", justify="right", no_wrap=True)
    for curve in curves:
        for name, words in GROUPS.items():
            figures = [f"{getattr(shot, name):.1f}" for shot in curve.shots]
            table.add_row(curve.learner if name == "seen" else "", words, *figures)


def _cells(row: StudyRow, trickle: bool) -> dict[str, str]:
    """By column; empty where there is no figure."""
    return {
        "runs": str(row.runs),
        "overall": _figure(row.overall) if trickle else "",
        "as of\nmSA": _figure(row.as_of.mSA),
        "mUA": _figure(row.as_of.mUA),
        "mH": _figure(row.as_of.mH),
        "±": _figure(None if row.deviation is None else row.deviation.mH),
        "recalc.\nmH": _figure(row.recalculated.mH),
        "paper\nmH": _figure(None if row.paper is None else row.paper.mH),
        "forgot": _figure(row.forgetting),
        "area": _figure(row.area),
        "trained": f"{row.seconds:.1f} s",
    }


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
