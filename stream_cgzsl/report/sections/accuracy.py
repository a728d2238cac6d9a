"""The accuracy of each generation: when it was new, in hindsight, and on features it had not learned yet."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.figure import Table, figure
from stream_cgzsl.report.charts.line import Series, lines
from stream_cgzsl.report.charts.scale import Scale, linear
from stream_cgzsl.report.document import NOT_ZERO_SHOT, Figures, RunDocument, WindowLine
from stream_cgzsl.report.numbers import decimal
from stream_cgzsl.report.sections.parts import Section, section, windows_across

Values = Sequence[float | None]


def accuracy(run: RunDocument) -> Section | None:
    """As of each window and recalculated, on one scale; then prequential accuracy and forgetting."""
    as_of, recalculated = _as_of(run.windows), _recalculated(run.windows)
    scale = linear([*_known(as_of), *_known(recalculated)], most=100.0)
    found = [
        _three(
            run,
            "As of each window",
            "Each generation when it was new, tested on all classes known by then.",
            as_of,
            run.as_of,
            scale,
        ),
        _three(
            run,
            "Recalculated at the end",
            "The last generation, tested on the classes of each earlier window, as in the paper." + in_hindsight(run),
            recalculated,
            run.recalculated,
            scale,
        ),
        prequential(run),
        forgetting(run),
    ]
    return (
        section("accuracy", "Accuracy, window by window", *found) if any(part is not None for part in found) else None
    )


def in_hindsight(run: RunDocument) -> str:
    """Whether accuracies on unseen classes are zero-shot in hindsight; a sentence after others, or nothing."""
    return f" {NOT_ZERO_SHOT[run.setting]}" if run.setting in NOT_ZERO_SHOT else ""


def prequential(run: RunDocument) -> Element | None:
    """How each generation classified the features of the next window."""
    values = [window.prequential_seen for window in run.windows], [window.prequential_unseen for window in run.windows]
    text = "The features of each window, classified by the previous generation. This needs no test data."
    return _chart(run, "Before learning", text, values, linear(_known(values), most=100.0))


def forgetting(run: RunDocument) -> Element | None:
    values = [window.forgetting for window in run.windows]
    known = _known([values])
    if not known:
        return None
    at, across = windows_across(run.windows)
    title = "Nothing is forgotten" if max(known) < 0.05 else f"Forgetting: {decimal(known[-1])} points at the end"
    text = "How far seen classes are below their best accuracy since they were learned, in points."
    text = " ".join(filter(None, (text, by_task(run))))
    series = [Series("lost", "harmonic", "square", values)]
    rows = [[str(window.number), decimal(window.forgetting)] for window in run.windows]
    chart = lines(title, text, series, at, across, linear([*known, 1.0], zero=True, ticks=4), "points")
    return figure(title, text, [chart], Table("Forgetting, points", ["window", "forgetting"], rows, at))


def by_task(run: RunDocument) -> str:
    """Forgetting as continual learning measures it, and the paper's figure."""
    if run.task_forgetting is None:
        return ""
    ours = f"By task, with gains counted: {decimal(run.task_forgetting)}"
    theirs = run.paper_forgetting
    return f"{ours}." if theirs is None else f"{ours}; the paper reports {decimal(theirs)}, and not how it measures."


def _three(
    run: RunDocument, title: str, text: str, values: Sequence[Values], means: Figures, scale: Scale
) -> Element | None:
    figures = f"mSA {decimal(means.mSA)}, mUA {decimal(means.mUA)}, mH {decimal(means.mH)}."
    return _chart(run, title, f"{text} {figures}", values, scale)


def _chart(run: RunDocument, title: str, text: str, values: Sequence[Values], scale: Scale) -> Element | None:
    """Seen, unseen and, if given, harmonic accuracy over the windows."""
    if not _known(values):
        return None
    at, across = windows_across(run.windows)
    kinds = (("seen", "circle"), ("unseen", "diamond"), ("harmonic", "square"))
    series = [Series(kind, kind, shape, one) for (kind, shape), one in zip(kinds, values, strict=False)]
    rows = [
        [str(window.number), *(decimal(value) for value in figures)]
        for window, figures in zip(run.windows, zip(*values, strict=True), strict=True)
    ]
    table = Table(f"{title}: accuracy, percent", ["window", *(one.name for one in series)], rows, at)
    return figure(title, text, [lines(title, text, series, at, across, scale, "percent")], table)


def _as_of(windows: Sequence[WindowLine]) -> tuple[Values, ...]:
    return (
        [window.seen_accuracy for window in windows],
        [window.unseen_accuracy for window in windows],
        [window.harmonic for window in windows],
    )


def _recalculated(windows: Sequence[WindowLine]) -> tuple[Values, ...]:
    return (
        [window.recalculated_seen for window in windows],
        [window.recalculated_unseen for window in windows],
        [window.recalculated_harmonic for window in windows],
    )


def _known(values: Sequence[Values]) -> list[float]:
    return [value for one in values for value in one if value is not None]
