"""Replay, losses and the cost of training."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.bars import Layer, bars
from stream_cgzsl.report.charts.figure import Table, figure
from stream_cgzsl.report.charts.line import Series, lines
from stream_cgzsl.report.charts.scale import linear
from stream_cgzsl.report.document import RunDocument
from stream_cgzsl.report.numbers import duration, significant
from stream_cgzsl.report.sections.parts import Section, section, windows_across
from stream_cgzsl.report.sections.replay import feature_map, replay_outcome


def training(run: RunDocument) -> Section | None:
    """Replay is part of training: it takes the place of old examples."""
    charts = (feature_map(run), replay_outcome(run), training_time(run), losses(run))
    return section("training", "Replay and training", *charts) if any(chart is not None for chart in charts) else None


def losses(run: RunDocument) -> Element | None:
    """One small chart per loss term, each on its own scale: terms are not comparable."""
    terms = list(dict.fromkeys(term for window in run.windows for term in window.losses))
    if not terms:
        return None
    at, across = windows_across(run.windows)
    charts = []
    for term in terms:
        values = [window.losses.get(term) for window in run.windows]
        scale = linear([value for value in values if value is not None], ticks=3)
        series = [Series(term, "harmonic", "square", values)]
        text = "The last value in each window’s training."
        charts.append(lines(f"Loss {term}", text, series, at, across, scale, term, 3, marks=False))
    rows = [[str(w.number), *(significant(w.losses.get(term)) for term in terms)] for w in run.windows]
    text = "The last value of each term in each window’s training; every term on its own scale."
    look = "wide small" if len(terms) > 1 else ""
    return figure("Losses, term by term", text, charts, Table("Losses", ["window", *terms], rows, at), class_=look)


def training_time(run: RunDocument) -> Element | None:
    if not run.windows:
        return None
    at, across = windows_across(run.windows, as_bars=True)
    values = [window.seconds_training for window in run.windows]
    title = f"Training took {duration(run.seconds_training)}"
    text = f"Seconds of training in each window; the whole run took {duration(run.seconds_total)}."
    layer = Layer("seconds", values, [f"window {w.number}: {duration(w.seconds_training)}" for w in run.windows])
    rows = [[str(window.number), duration(window.seconds_training)] for window in run.windows]
    table = Table("Training time", ["window", "seconds"], rows, at)
    return figure(title, text, [bars(title, text, [layer], across, "seconds")], table)
