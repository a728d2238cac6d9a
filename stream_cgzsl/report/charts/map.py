"""Features in a plane: real ones as dots, replayed ones as crosses, with a colour and a name per class."""

from __future__ import annotations

from collections.abc import Sequence
from math import dist, inf
from statistics import fmean
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.plot import drawing, inner
from stream_cgzsl.report.document import FeatureMap, MapPoint
from stream_cgzsl.report.markup import el, percent, spell
from stream_cgzsl.report.numbers import shorten

Place = tuple[float, float]

WIDTH, HEIGHT = 640.0, 420.0
_EDGE = 18.0
_COLOURS = 6  # in the style sheet
_NAMED = 24  # with more classes the names do not fit
_CROSS = 3.2
_NAME_WIDTH, _NAME_HEIGHT = 150.0, 20.0


def by_class(features: FeatureMap) -> list[tuple[str, list[MapPoint], list[MapPoint]]]:
    """The classes that have points: the name, the real points and the replayed ones."""
    found: dict[int, tuple[list[MapPoint], list[MapPoint]]] = {}
    for point in features.points:
        found.setdefault(point.class_index, ([], []))[point.replayed].append(point)
    return [(features.class_ids[index], *found[index]) for index in sorted(found)]


def scatter(name: str, description: str, features: FeatureMap) -> Element:
    classes = by_class(features)
    place = _Transform(features.points)
    centres = [_centre(real or replayed, place) for _, real, replayed in classes]
    clusters = [
        el(
            "g",
            el("title", class_id),
            el("path", d="".join(_cross(*place(point)) for point in replayed), class_="crosses"),
            el("path", d="".join(_dot(*place(point)) for point in real), class_="dots"),
            class_=f"cluster class-{colour}",
        )
        for (class_id, real, replayed), colour in zip(classes, _colours(centres), strict=True)
    ]
    names = _names([class_id for class_id, _, _ in classes], centres) if len(classes) <= _NAMED else None
    return drawing(name, description, inner(f"0 0 {WIDTH:g} {HEIGHT:g}", clusters), names, class_="map")


def _names(class_ids: Sequence[str], centres: Sequence[Place]) -> list[Element]:
    """Each at the centre of its class, or lower if it would cover another name."""
    taken: list[Place] = []
    found = []
    for class_id, (x, y) in sorted(zip(class_ids, centres, strict=True), key=lambda pair: pair[1][1]):
        for other, height in taken:
            if abs(other - x) < _NAME_WIDTH and abs(y - height) < _NAME_HEIGHT:
                y = height + _NAME_HEIGHT
        taken.append((x, y))
        side = "start" if x < 0.2 * WIDTH else "end" if x > 0.8 * WIDTH else "middle"
        for length, room in ((24, "roomy"), (13, "narrow")):  # the style sheet shows one of them
            at = {"x": percent(x / WIDTH), "y": percent(y / HEIGHT), "class_": f"name {side} {room}"}
            found.append(el("text", shorten(class_id, length), **at))
    return found


def _centre(points: Sequence[MapPoint], place: _Transform) -> Place:
    placed = [place(point) for point in points]
    return fmean(x for x, _ in placed), fmean(y for _, y in placed)


def _colours(centres: Sequence[Place]) -> list[int]:
    """A colour per class: the one whose nearest class so far is farthest away."""
    taken: list[list[Place]] = [[] for _ in range(_COLOURS)]
    chosen = []
    for centre in centres:
        room = [min((dist(centre, other) for other in others), default=inf) for others in taken]
        colour = room.index(max(room))
        taken[colour].append(centre)
        chosen.append(colour)
    return chosen


class _Transform:
    """From the plane of the features to the drawing, with the same scale in both directions."""

    def __init__(self, points: Sequence[MapPoint]) -> None:
        xs, ys = [point.x for point in points], [point.y for point in points]
        self._centre = ((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2)
        across, up = (max(xs) - min(xs)) or 1.0, (max(ys) - min(ys)) or 1.0
        self._scale = min((WIDTH - 2 * _EDGE) / across, (HEIGHT - 2 * _EDGE) / up)

    def __call__(self, point: MapPoint) -> Place:
        x, y = (point.x - self._centre[0]) * self._scale, (point.y - self._centre[1]) * self._scale
        return WIDTH / 2 + x, HEIGHT / 2 - y


def _dot(x: float, y: float) -> str:
    return f"M{spell(x)} {spell(y)}h0"


def _cross(x: float, y: float) -> str:
    arm = spell(2 * _CROSS)
    return f"M{spell(x - _CROSS)} {spell(y - _CROSS)}l{arm} {arm}m0-{arm}l-{arm} {arm}"
