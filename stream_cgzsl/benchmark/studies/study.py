"""Running a study: its runs one after the other, each in its own folder, then one document and one page."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stream_cgzsl.benchmark.runs.folder import RunFolder, Spent
from stream_cgzsl.benchmark.runs.offline import run_offline
from stream_cgzsl.benchmark.runs.request import RunRequest
from stream_cgzsl.benchmark.runs.run import Observer, run
from stream_cgzsl.benchmark.scores import mean, mean_by_examples
from stream_cgzsl.benchmark.studies.plans import Study, Variant
from stream_cgzsl.report.document import Figures, RunDocument, StudyDocument, StudyRow
from stream_cgzsl.report.page import render
from stream_cgzsl.runtime.atomic_write import write_atomically
from stream_cgzsl.runtime.devices import choose_device
from stream_cgzsl.runtime.environment import environment


def run_study(
    study: Study, base: RunRequest, seeds: int, folder: RunFolder, command: str, observer: Observer
) -> StudyDocument:
    """Runs what is missing of a study and writes its folder. Seeds count up from that of `base`.

    More seeds, and more rows of a sweep, can be added to a folder later. Raises `UsageError` where the folder has
    another study, and whatever ends a run.
    """
    rows: list[StudyRow] = []
    with folder.held():
        identity = {"study": study.name, **base.identity()}
        folder.require(identity)
        folder.write_request(identity, Spent())
        for variant in study.variants:
            runs = [_run(variant, seed, folder, observer) for seed in _seeds(base, seeds)]
            if study.each_seed:
                rows += [_row(replace(variant, label=f"seed {one.seed}", paper=None), [one]) for one in runs]
            rows.append(_row(variant, runs))
        document = StudyDocument(
            study=study.name,
            title=study.title,
            question=study.question,
            dataset=base.data.name,
            extractor=base.data.extractor,
            setting=study.setting,
            command=command,
            environment=environment(choose_device(base.settings.device)),
            x_label=study.x_label,
            rows=tuple(rows),
        )
        write_study(folder, document)
    return document


def write_study(folder: RunFolder, document: StudyDocument) -> None:
    """Writes the page and the document of a study."""
    write_atomically(folder.report_html, render(document))
    write_atomically(folder.study_json, document.model_dump_json(indent=1) + "\n")


def _seeds(base: RunRequest, seeds: int) -> range:
    return range(base.settings.seed, base.settings.seed + seeds)


def _run(variant: Variant, seed: int, folder: RunFolder, observer: Observer) -> RunDocument:
    name = f"{re.sub(r'[^a-z0-9]+', '-', variant.label.lower()).strip('-')[:60]}-seed-{seed}"
    request = variant.request
    changes: dict[str, Any] = {"seed": seed}
    if request.bus is not None:
        changes["prefix"] = f"{request.settings.prefix}-{name}"  # the runs of a study share the bus
    request = replace(request, settings=request.settings.model_copy(update=changes))
    run_folder = RunFolder(folder.path / name)
    return run_offline(request, run_folder) if variant.offline else run(request, run_folder, observer)


def _row(variant: Variant, runs: Sequence[RunDocument]) -> StudyRow:
    return StudyRow(
        label=variant.label,
        runs=len(runs),
        as_of=_mean([one.as_of for one in runs]),
        deviation=_deviation([one.as_of for one in runs]) if len(runs) > 1 else None,
        recalculated=_mean([one.recalculated for one in runs]),
        forgetting=mean(one.forgetting for one in runs),
        area=mean(one.area for one in runs),
        overall=mean(one.overall for one in runs),
        by_examples=mean_by_examples([one.by_examples for one in runs]),
        paper=variant.paper,
        x=variant.x,
        seconds=round(statistics.fmean(one.seconds_training for one in runs), 3),
        settings=runs[0].settings,
        digest=runs[0].windows[-1].digest if len(runs) == 1 else None,
    )


def _mean(figures: Sequence[Figures]) -> Figures:
    return Figures(**{name: mean(getattr(one, name) for one in figures) for name in Figures.model_fields})


def _deviation(figures: Sequence[Figures]) -> Figures:
    """The sample standard deviation; None where a figure is missing."""
    found: dict[str, float | None] = {}
    for name in Figures.model_fields:
        values = [getattr(one, name) for one in figures]
        found[name] = None if None in values else statistics.stdev(values)
    return Figures(**found)
