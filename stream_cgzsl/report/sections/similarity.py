"""How the projections of unseen classes compare with those of their neighbours."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.figure import Table, figure
from stream_cgzsl.report.charts.markers import legend, legend_entry
from stream_cgzsl.report.charts.neighbours import neighbours
from stream_cgzsl.report.charts.scale import Scale, linear
from stream_cgzsl.report.document import RunDocument, SimilarityPanel
from stream_cgzsl.report.markup import el
from stream_cgzsl.report.numbers import decimal
from stream_cgzsl.report.sections.parts import Section, section

_TEXT = (
    "Each panel follows one class that was unseen at first. It shows the projections that are most similar to the "
    "class’s mean test feature, in every window. The class is recognised where its own square is on top."
)


def similarity(run: RunDocument) -> Section | None:
    panels = [panel for panel in run.similarities if any(window.top for window in panel.windows)]
    if not panels:
        return None
    every = [near.similarity for panel in panels for window in panel.windows for near in window.top]
    scale = linear(every, ticks=4)
    return section(
        "similarity",
        "Unseen classes and their neighbours",
        el("p", _TEXT, class_="note"),
        legend(
            legend_entry("square", "harmonic", "the class itself (hollow: still unseen)"),
            legend_entry("circle", "seen", "a seen class", line=False),
            legend_entry("diamond", "unseen hollow", "an unseen class", line=False),
        ),
        [_panel(panel, scale) for panel in panels],
    )


def _panel(panel: SimilarityPanel, scale: Scale) -> Element:
    shown = [window for window in panel.windows if window.top]
    own = sum(window.top[0].class_id == panel.class_id for window in shown)
    learned = "never learned" if panel.learned_in is None else f"learned in window {panel.learned_in}"
    text = f"On top in {own} of {len(shown)} windows; {learned}."
    rows = [
        [
            str(window.window),
            *(f"{near.class_id} {decimal(near.similarity, 3)} ({_state(near.seen)})" for near in window.top),
        ]
        for window in shown
    ]
    most = max(len(row) for row in rows) - 1
    padded = [[*row, *[""] * (most + 1 - len(row))] for row in rows]
    head = ["window", *(("most similar", "second", "third")[i] if i < 3 else f"{i + 1}th" for i in range(most))]
    name = f"{panel.class_id}: most similar projections"
    chart = neighbours(name, text, panel.model_copy(update={"windows": tuple(shown)}), scale)
    return figure(panel.class_id, text, [chart], Table(name, head, padded))


def _state(seen: bool) -> str:
    return "seen" if seen else "unseen"
