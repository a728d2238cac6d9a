"""The windows of a run with their digests, and how to reproduce the run."""

from __future__ import annotations

from stream_cgzsl.report.charts.figure import Table, table
from stream_cgzsl.report.document import RunDocument
from stream_cgzsl.report.markup import Node, el
from stream_cgzsl.report.numbers import count, decimal, duration
from stream_cgzsl.report.sections.parts import Section, command, facts, section


def windows(run: RunDocument) -> Section | None:
    if not run.windows:
        return None
    rows: list[list[Node]] = [
        [
            str(window.number),
            count(window.described),
            count(window.features),
            count(window.seen),
            count(window.unseen),
            decimal(window.seen_accuracy),
            decimal(window.unseen_accuracy),
            decimal(window.harmonic),
            decimal(window.area),
            duration(window.seconds_training),
            el("code", window.digest[:16], title=window.digest),
        ]
        for window in run.windows
    ]
    head = ["window", "described", "features", "seen", "unseen", "SA", "UA", "H", "area", "training", "digest"]
    caption = "Each trained window: its inputs, the classes known after it, its accuracies, and its generation’s digest"
    return section("windows", "Every window", table(Table(caption, head, rows), "figures"))


def reproduce(run: RunDocument) -> Section:
    return section(
        "again",
        "Run it again",
        command(run.command, "The same command in the same environment gives the same digests."),
        el("div", el("h3", "The run"), facts(_run(run), "The run"), class_="column"),
        el("div", el("h3", "Settings"), facts(run.settings, "Settings"), class_="column"),
        el("div", el("h3", "Environment"), facts(run.environment, "Environment"), class_="column"),
    )


def _run(run: RunDocument) -> dict[str, object]:
    return {
        "data set": run.dataset,
        "features": run.extractor,
        "setting": run.setting,
        "learner": run.learner,
        "seed": run.seed,
        "bus": run.bus,
    }
