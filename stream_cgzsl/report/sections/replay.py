"""Replay: the features a learner generates in place of old examples."""

from __future__ import annotations

from collections.abc import Sequence
from math import dist
from statistics import fmean
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.bars import Layer, bars
from stream_cgzsl.report.charts.figure import Table, figure
from stream_cgzsl.report.charts.map import by_class, scatter
from stream_cgzsl.report.charts.markers import legend, legend_entry
from stream_cgzsl.report.document import MapPoint, RunDocument
from stream_cgzsl.report.markup import el
from stream_cgzsl.report.numbers import MISSING, count, plural, significant
from stream_cgzsl.report.sections.parts import windows_across


def feature_map(run: RunDocument) -> Element | None:
    if run.map is None or not run.map.points:
        return None
    classes = by_class(run.map)
    title = "Real and replayed features"
    text = (
        f"Features of {plural(len(classes), 'class', 'classes')} in the plane of two principal components. Replay is "
        "good where its crosses fall among the dots of the same class."
    )
    rows = [
        [class_id, count(len(real)), count(len(replayed)), _away(real, replayed)]
        for class_id, real, replayed in classes
    ]
    marks = legend(
        el("li", el("span", "●", class_="glyph", aria_hidden="true"), "real"),
        el("li", el("span", "✕", class_="glyph", aria_hidden="true"), "replayed"),
    )
    head = ["class", "real", "replayed", "distance of their means, in standard deviations of the real ones"]
    return figure(title, text, [scatter(title, text, run.map)], Table(title, head, rows), marks, "wide")


def _away(real: Sequence[MapPoint], replayed: Sequence[MapPoint]) -> str:
    """The distance of the replayed mean from the real one, over the real points' RMS distance from their mean."""
    if not real or not replayed:
        return MISSING
    middle, other = _middle(real), _middle(replayed)
    spread = fmean(dist((point.x, point.y), middle) ** 2 for point in real) ** 0.5
    return significant(dist(middle, other) / spread) if spread else MISSING


def _middle(points: Sequence[MapPoint]) -> tuple[float, float]:
    return fmean(point.x for point in points), fmean(point.y for point in points)


def replay_outcome(run: RunDocument) -> Element | None:
    windows = [window for window in run.windows if window.replay_kept is not None or window.replay_rejected is not None]
    both = [(window.replay_kept or 0, window.replay_rejected or 0) for window in windows]
    total = sum(map(sum, both))
    if not total:
        return None
    at, across = windows_across(windows, as_bars=True)
    part = 100.0 * sum(good for good, _ in both) / total
    title = f"{part:.0f} % of replayed features were kept"
    text = "A generated feature is kept if the classifier recognises its class, and rejected otherwise."
    layers = [
        Layer("seen", [good for good, _ in both], [f"window {w.number}: {count(w.replay_kept)} kept" for w in windows]),
        Layer(
            "hatched",
            [bad for _, bad in both],
            [f"window {w.number}: {count(w.replay_rejected)} rejected" for w in windows],
        ),
    ]
    rows = [[str(window.number), count(window.replay_kept), count(window.replay_rejected)] for window in windows]
    marks = legend(
        legend_entry("square", "seen", "kept", line=False), legend_entry("square", "hatched", "rejected", line=False)
    )
    table = Table("Replayed features", ["window", "kept", "rejected"], rows, at)
    return figure(title, text, [bars(title, text, layers, across, "features")], table, marks)
