"""What training did and what it cost."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.bars import Layer, bars
from stream_cgzsl.report.charts.figure import Table, figure
from stream_cgzsl.report.charts.line import Series, lines
from stream_cgzsl.report.charts.scale import linear
from stream_cgzsl.report.document import RunDocument
from stream_cgzsl.report.numbers import NONE, seconds, significant
from stream_cgzsl.report.sections.parts import Section, section, windows_across
from stream_cgzsl.report.sections.replay import kept, mapped


def training(run: RunDocument) -> Section | None:
    """Replay stands here too: it is what training has of old classes instead of their examples."""
    found = [part for part in (mapped(run), kept(run), cost(run), losses(run)) if part is not None]
    return section("training", "Replay and training", *found) if found else None


def losses(run: RunDocument) -> Element | None:
    """One small chart a term, each on its own scale: terms do not compare."""
    terms = list(dict.fromkeys(term for window in run.windows for term in window.losses))
    if not terms:
        return None
    at, across = windows_across(run.windows)
    charts = []
    for term in terms:
        values = [window.losses.get(term) for window in run.windows]
        scale = linear([value for value in values if value is not None], ticks=3)
        name, told = f"Loss {term}", "The last value in each window’s training."
        charts.append(
            lines(name, told, [Series(term, "harmonic", "square", values)], at, across, scale, term, 3, marks=False)
        )
    rows = [
        [str(window.number), *(significant(window.losses[term]) if term in window.losses else NONE for term in terms)]
        for window in run.windows
    ]
    text = "The last value of each term in each window’s training; every term on its own scale."
    look = "wide small" if len(terms) > 1 else ""
    return figure("Losses, term by term", text, charts, Table("Losses", ["window", *terms], rows, at), class_=look)


def cost(run: RunDocument) -> Element | None:
    if not run.windows:
        return None
    at, across = windows_across(run.windows, as_bars=True)
    values = [window.seconds_training for window in run.windows]
    title = f"Training took {seconds(run.seconds_training)}"
    text = f"Seconds of training in each window; the whole run took {seconds(run.seconds_total)}."
    layer = Layer("seconds", values, [f"window {w.number}: {seconds(w.seconds_training)}" for w in run.windows])
    rows = [[str(window.number), seconds(window.seconds_training)] for window in run.windows]
    table = Table("Training time", ["window", "seconds"], rows, at)
    return figure(title, text, [bars(title, text, [layer], across, "seconds")], table)
