"""A study as one table in a terminal."""

from __future__ import annotations

from rich import box
from rich.table import Table

from stream_cgzsl.benchmark.run_screen import shown_figures
from stream_cgzsl.report.document import StudyDocument, StudyRow


def study_table(document: StudyDocument) -> Table:
    title = f"{document.title} ({document.dataset}, {document.extractor}, {document.setting})"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    papers = any(row.paper is not None for row in document.rows)
    table.add_column("row")
    for name in ("runs", "as of\nmSA / mUA / mH", "recalculated\nmSA / mUA / mH"):
        table.add_column(name, justify="right", no_wrap=True)
    if papers:
        table.add_column(f"the paper\n({document.paper_extractor})", justify="right", no_wrap=True)
    for name in ("forgotten", "area", "trained"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in document.rows:
        paper = [] if not papers else ["" if row.paper is None else shown_figures(row.paper)]
        table.add_row(
            row.label,
            str(row.runs),
            _as_of(row),
            shown_figures(row.recalculated),
            *paper,
            "-" if row.forgetting is None else f"{row.forgetting:.1f}",
            "-" if row.area is None else f"{row.area:.1f}",
            f"{row.seconds:.1f} s",
        )
    return table


def _as_of(row: StudyRow) -> str:
    harmonic = None if row.deviation is None else row.deviation.mH
    return shown_figures(row.as_of) + ("" if harmonic is None else f" ±{harmonic:.1f}")
