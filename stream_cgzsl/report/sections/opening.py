"""The first screen: what was run, the result in one sentence, and the headline figures."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from stream_cgzsl.report.document import RunDocument
from stream_cgzsl.report.markup import Node, el
from stream_cgzsl.report.numbers import many, plain, seconds, share


def opening(run: RunDocument) -> list[Node]:
    return [
        el("p", f"{run.dataset}, {run.setting} setting, learner {run.learner}", class_="kicker"),
        el("h1", run.title),
        el("p", reading(run), class_="lead"),
        headline(run),
    ]


def reading(run: RunDocument) -> str:
    """The result as one would say it."""
    if not run.windows:
        return "No window was trained, so there is nothing to recognise yet."
    last = run.windows[-1]
    after = f"After {many(len(run.windows), 'window')}"
    learned = many(last.seen, "class", "classes")
    if last.seen_accuracy is None and last.unseen_accuracy is None:
        return f"{after} it knows {learned} by example and {last.unseen} by description; nothing says how well."
    seen = f"{share(last.seen_accuracy)} of what it sees of the {learned} it has learned"
    if last.seen_accuracy is None:
        return f"{after} it recognises {share(last.unseen_accuracy)} of {_described(last.unseen)}."
    if last.unseen_accuracy is None:
        return f"{after} it recognises {seen}; no class is left that it knows by description only."
    return f"{after} it recognises {seen}, and {share(last.unseen_accuracy)} of {_described(last.unseen)}."


def _described(number: int) -> str:
    return f"the {many(number, 'class', 'classes')} it knows by description only"


def headline(run: RunDocument) -> Element:
    """The figures a table would print, largest first."""
    over = f"mean over {many(len(run.windows), 'window')}"
    return el(
        "dl",
        _figure("mH", f"harmonic mean of seen and unseen, {over}", plain(run.as_of.mH), "harmonic"),
        _figure("mSA", "percent right of learned classes", plain(run.as_of.mSA), "seen"),
        _figure("mUA", "percent right of classes known by description only", plain(run.as_of.mUA), "unseen"),
        _figure("Forgetting", "points lost on learned classes since their best", plain(run.forgetting), ""),
        _figure("Area", "under seen against unseen, mean over windows", plain(run.area), ""),
        _figure("Training", f"of {seconds(run.seconds_total)} in all", seconds(run.seconds_training), ""),
        class_="headline",
    )


def _figure(name: str, meaning: str, value: str, kind: str) -> Element:
    return el(
        "div",
        el("dt", name),
        el("dd", value, class_=f"figure {kind}".strip()),
        el("dd", meaning, class_="meaning"),
    )
