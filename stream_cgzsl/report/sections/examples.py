"""Accuracy against number of examples: of a few-shot study, and of runs in the trickle setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.figure import Table, figure
from stream_cgzsl.report.charts.line import Series, lines
from stream_cgzsl.report.charts.plot import Axis
from stream_cgzsl.report.charts.scale import Scale, evenly_spaced, linear
from stream_cgzsl.report.document import RunDocument, StudyDocument
from stream_cgzsl.report.numbers import decimal, percentage, plural, shorten
from stream_cgzsl.report.sections.parts import Section, section, windows_across
from stream_cgzsl.schemas import EXAMPLE_BUCKETS

_TITLE = "Accuracy by number of examples"
_SHAPES = ("circle", "diamond", "square", "triangle", "star")
_COLOURS = 6  # in the style sheet
_FROM_NONE = "From no example to many"
_SO_FAR = ("examples", "examples so far")

Values = Sequence[float | None]
Curves = Mapping[str, Values]
"""Accuracies by the name of their line."""


def few_shot(study: StudyDocument) -> Section | None:
    """Of every learner: the classes that got k examples, those learned before, and those still unseen."""
    if not study.curves:
        return None
    ks = [str(shot.k) for shot in study.curves[0].shots]
    given, seen, rest = (
        {curve.learner: [getattr(shot, group) for shot in curve.shots] for curve in study.curves}
        for group in ("given", "seen", "rest")
    )
    one_scale = _scale([*seen.values(), *rest.values()])

    def drawn(title: str, text: str, curves: Curves, scale: Scale, class_: str = "") -> Element:
        return _overlaid(title, text, curves, scale, ks, ("k", "examples per class, k"), class_)

    text = f"Described at first, then given k examples; mean over {plural(study.draws or 1, 'draw')}."
    return section(
        "examples",
        _TITLE,
        drawn("Classes with k examples", text, given, _scale(given.values()), "wide"),
        drawn("Classes learned before", "All their examples came in the first window.", seen, one_scale),
        drawn("Classes still unseen", "Described, and without any example.", rest, one_scale),
    )


def of_rows(study: StudyDocument) -> Section | None:
    """The rows of a study in the trickle setting, as lines over the numbers of examples."""
    rows = [row for row in study.rows if row.by_examples]
    if study.setting != "trickle" or not rows:
        return None
    curves = {row.label: [row.by_examples.get(bucket) for bucket in EXAMPLE_BUCKETS] for row in rows}
    text = "Classes by how many examples they have had; mean over windows."
    chart = _overlaid(_FROM_NONE, text, curves, _scale(curves.values()), EXAMPLE_BUCKETS, _SO_FAR, "wide")
    return section("examples", _TITLE, chart)


def of_run(run: RunDocument) -> Section | None:
    """A run in the trickle setting: the mean over windows, and every window."""
    if run.setting != "trickle" or not run.by_examples:
        return None
    shown = [bucket for bucket in EXAMPLE_BUCKETS if bucket in run.by_examples]
    means = {"accuracy": [run.by_examples[bucket] for bucket in shown]}
    scale = _scale([[window.overall, *window.by_examples.values()] for window in run.windows])
    text = f"Classes by how many examples they have had; mean over {plural(len(run.windows), 'window')}."
    return section(
        "examples", _TITLE, _overlaid(_FROM_NONE, text, means, scale, shown, _SO_FAR), _over_windows(run, shown, scale)
    )


def _over_windows(run: RunDocument, shown: Sequence[str], scale: Scale) -> Element:
    at, across = windows_across(run.windows)
    groups = {bucket: [window.by_examples.get(bucket) for window in run.windows] for bucket in shown}
    overall = Series("all", "harmonic", "square", [window.overall for window in run.windows])
    title = "Window by window"
    text = f"The same groups, and all classes described so far: {percentage(run.overall)} on average."
    drawn = lines(title, text, [*_series(groups), overall], at, across, scale, "percent", marks=False)
    rows = [
        [str(window.number), decimal(window.overall), *(decimal(window.by_examples.get(bucket)) for bucket in shown)]
        for window in run.windows
    ]
    table = Table("Accuracy, percent, by examples so far", ["window", "all", *shown], rows, at)
    return figure(title, text, [drawn], table)


def _overlaid(
    title: str, text: str, curves: Curves, scale: Scale, places: Sequence[str], words: tuple[str, str], class_: str = ""
) -> Element:
    """One line per name over evenly spaced places; `words` head their column and their axis."""
    at = evenly_spaced(len(places))
    across = Axis(list(zip(at, places, strict=True)), words[1])
    drawn = lines(title, text, _series(curves), at, across, scale, "percent")
    columns = zip(*curves.values(), strict=True)
    rows = [[place, *map(decimal, figures)] for place, figures in zip(places, columns, strict=True)]
    table = Table(f"{title}: accuracy, percent", [words[0], *curves], rows, at)
    return figure(title, text, [drawn], table, class_=class_)


def _series(curves: Curves) -> list[Series]:
    """Lines that differ in colour, dashes and markers."""
    return [
        Series(
            shorten(name.partition(" (")[0], 14), f"overlaid class-{i % _COLOURS}", _SHAPES[i % len(_SHAPES)], values
        )
        for i, (name, values) in enumerate(curves.items())
    ]


def _scale(values: Iterable[Values]) -> Scale:
    return linear([value for one in values for value in one if value is not None], most=100.0)
