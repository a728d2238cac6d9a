"""A study as one table that fits a terminal; its report and its JSON tell more."""

from __future__ import annotations

from rich import box
from rich.table import Table

from stream_cgzsl.report.document import StudyDocument, StudyRow


def study_table(document: StudyDocument) -> Table:
    """mSA, mUA and mH as of each window, mH recalculated, and the paper's mH where it has one."""
    title = f"{document.title}\n{document.dataset}, {document.extractor}, {document.setting}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("row")
    columns = [_cells(row) for row in document.rows]
    shown = [name for name in columns[0] if any(cells[name] for cells in columns)] if columns else []
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)
    for row, cells in zip(document.rows, columns, strict=True):
        table.add_row(row.label, *(cells[name] or "-" for name in shown))
    return table


def _cells(row: StudyRow) -> dict[str, str]:
    """By column; empty where there is nothing to tell."""
    return {
        "runs": str(row.runs),
        "as of\nmSA": _figure(row.as_of.mSA),
        "mUA": _figure(row.as_of.mUA),
        "mH": _figure(row.as_of.mH),
        "±": _figure(None if row.deviation is None else row.deviation.mH),
        "again\nmH": _figure(row.recalculated.mH),
        "paper\nmH": _figure(None if row.paper is None else row.paper.mH),
        "forgot": _figure(row.forgetting),
        "area": _figure(row.area),
        "trained": f"{row.seconds:.1f} s",
    }


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
