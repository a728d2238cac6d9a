"""How a class that was only described finds its place among the others."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.figure import Table, figure
from stream_cgzsl.report.charts.marks import key, legend
from stream_cgzsl.report.charts.neighbours import neighbours
from stream_cgzsl.report.charts.scale import Scale, linear
from stream_cgzsl.report.document import RunDocument, SimilarityPanel
from stream_cgzsl.report.markup import el
from stream_cgzsl.report.numbers import plain
from stream_cgzsl.report.sections.parts import Section, section

_TEXT = (
    "Each panel follows one class that began as a description: which projections its mean test feature is most similar "
    "to, in every window. The class is recognised where its own squares are on top."
)


def similarity(run: RunDocument) -> Section | None:
    panels = [panel for panel in run.similarities if any(window.top for window in panel.windows)]
    if not panels:
        return None
    every = [near.similarity for panel in panels for window in panel.windows for near in window.top]
    scale = linear(every, ticks=4)
    return section(
        "similarity",
        "Where described classes stand",
        el("p", _TEXT, class_="note"),
        legend(
            key("square", "harmonic", "the class itself (hollow: not learned yet)"),
            key("circle", "seen", "a learned class", line=False),
            key("diamond", "unseen hollow", "a class known by description", line=False),
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
            *(f"{near.class_id} {plain(near.similarity, 3)} ({_state(near.seen)})" for near in window.top),
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
    return "learned" if seen else "described"
