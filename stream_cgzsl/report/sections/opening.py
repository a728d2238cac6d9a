"""The first screen: what was run, the result in one sentence, and the headline figures."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from stream_cgzsl.report.document import RunDocument
from stream_cgzsl.report.markup import Node, el
from stream_cgzsl.report.numbers import decimal, duration, percentage, plural


def opening(run: RunDocument) -> list[Node]:
    return [
        el("p", f"{run.dataset}, {run.setting} setting, learner {run.learner}", class_="kicker"),
        el("h1", run.title),
        el("p", summary(run), class_="lead"),
        headline(run),
    ]


def summary(run: RunDocument) -> str:
    """The result in one sentence."""
    if not run.windows:
        return "No window was trained, so nothing can be recognised yet."
    last = run.windows[-1]
    after = f"After {plural(len(run.windows), 'window')}"
    groups = (
        (last.seen_accuracy, plural(last.seen, "seen class", "seen classes")),
        (last.unseen_accuracy, plural(last.unseen, "unseen class", "unseen classes")),
    )
    found = [f"{percentage(mean)} of the examples of {classes}" for mean, classes in groups if mean is not None]
    if not found:
        return f"{after} it knows {groups[0][1]} and {groups[1][1]}; no test examples say how well."
    return f"{after} it recognises {' and '.join(found)}."


def headline(run: RunDocument) -> Element:
    """The headline figures."""
    over = f"mean over {plural(len(run.windows), 'window')}"
    trickle = run.setting == "trickle"
    return el(
        "dl",
        _figure("Overall", f"accuracy on all classes, {over}", decimal(run.overall), "") if trickle else None,
        _figure("mH", f"harmonic mean of seen and unseen, {over}", decimal(run.as_of.mH), "harmonic"),
        _figure("mSA", "accuracy on seen classes, percent", decimal(run.as_of.mSA), "seen"),
        _figure("mUA", "accuracy on unseen classes, known by description only", decimal(run.as_of.mUA), "unseen"),
        _figure("Forgetting", "points that seen classes are below their best", decimal(run.forgetting), ""),
        None if trickle else _figure("Area", "under the seen-unseen curve, mean over windows", decimal(run.area), ""),
        _figure("Training", f"of {duration(run.seconds_total)} in total", duration(run.seconds_training), ""),
        class_="headline",
    )


def _figure(name: str, meaning: str, value: str, kind: str) -> Element:
    return el(
        "div", el("dt", name), el("dd", value, class_=f"figure {kind}".strip()), el("dd", meaning, class_="meaning")
    )
