"""The projections that are most similar to a class's features, window by window, and when the class is learned."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.markers import marker
from stream_cgzsl.report.charts.plot import Axis, Point, axes, axis_of, drawing, path, spread_out, stretched
from stream_cgzsl.report.charts.scale import Scale, evenly_spaced, pick_labels
from stream_cgzsl.report.document import Neighbours, SimilarityPanel
from stream_cgzsl.report.markup import el, percent
from stream_cgzsl.report.numbers import decimal, shorten


def neighbours(name: str, description: str, panel: SimilarityPanel, scale: Scale) -> Element:
    """The class itself is a bold line with squares; seen neighbours are circles, unseen ones hollow diamonds."""
    windows = panel.windows
    at = evenly_spaced(len(windows))
    across = Axis(
        [(at[i], str(windows[i].window)) for i in pick_labels([window.window for window in windows], 5)], "window"
    )
    tracks = _tracks(panel, at, scale)
    return drawing(
        name,
        description,
        axes(across, axis_of(scale)),
        _learned(panel, at),
        stretched(
            path(points, "line harmonic" if c == panel.class_id else "line faint") for c, points in tracks.items()
        ),
        [item for x, window in zip(at, windows, strict=True) for item in _marks(panel.class_id, window, x, scale)],
        _labels(panel, scale),
        class_="neighbours",
    )


def _tracks(panel: SimilarityPanel, at: Sequence[float], scale: Scale) -> dict[str, list[Point | None]]:
    """Each class that was ever among the nearest, over all windows; None where it was not."""
    tracks: dict[str, list[Point | None]] = {}
    for number, (x, window) in enumerate(zip(at, panel.windows, strict=True)):
        for near in window.top:
            tracks.setdefault(near.class_id, [None] * len(at))[number] = (x, scale(near.similarity))
    return tracks


def _learned(panel: SimilarityPanel, at: Sequence[float]) -> list[Element]:
    """A vertical line at the window with the class's first features."""
    for x, window in zip(at, panel.windows, strict=True):
        if window.window == panel.learned_in:
            side = "end" if x > 0.5 else "start"
            return [
                el("line", x1=percent(x), x2=percent(x), y1="0", y2="100%", class_="event"),
                el("text", "learned", x=percent(x), y="0", dx="-5" if x > 0.5 else "5", dy="-5", class_=f"tick {side}"),
            ]
    return []


def _marks(itself: str, window: Neighbours, x: float, scale: Scale) -> list[Element]:
    found = []
    for near in reversed(window.top):  # the best on top
        shape, kind = ("circle", "seen") if near.seen else ("diamond", "unseen hollow")
        if near.class_id == itself:
            shape, kind = "square", "harmonic" if near.seen else "harmonic hollow"
        state = "seen" if near.seen else "unseen"
        tip = f"window {window.window}: {near.class_id} {decimal(near.similarity, 3)}, {state}"
        found.append(marker(shape, x, scale(near.similarity), kind, tip))
    return found


def _labels(panel: SimilarityPanel, scale: Scale) -> list[Element]:
    """The names of the last window's nearest classes, at the right end."""
    top = panel.windows[-1].top if panel.windows else ()
    heights = spread_out([scale(near.similarity) for near in top])
    found = []
    for near, height in zip(top, heights, strict=True):
        kind = "harmonic strong" if near.class_id == panel.class_id else "seen" if near.seen else "unseen"
        text = el(
            "text", el("title", near.class_id), shorten(near.class_id, 16), dx="12", dy="0.35em", class_=f"label {kind}"
        )
        text.set("x", "100%")
        text.set("y", percent(1 - height))
        found.append(text)
    return found
