"""What a finished run writes into its folder: the report and the metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stream_cgzsl.benchmark.paper import paper_forgetting, paper_rows
from stream_cgzsl.benchmark.runs.folder import RunFolder, Spent
from stream_cgzsl.benchmark.runs.metrics_document import metrics_document
from stream_cgzsl.benchmark.runs.progress import TaskResult
from stream_cgzsl.benchmark.runs.request import DECIDING, RunRequest
from stream_cgzsl.benchmark.scores import Readings, Scores, percent
from stream_cgzsl.report.document import CurvePoint, FeatureMap, Figures, RunDocument, SimilarityPanel, WindowLine
from stream_cgzsl.report.page import render
from stream_cgzsl.runtime.atomic_write import write_atomically


@dataclass(frozen=True)
class Results:
    """Everything a run measured, and the data of its pictures."""

    readings: Readings
    windows: Sequence[WindowLine]
    environment: Mapping[str, Any]
    bus: str
    curve: tuple[CurvePoint, ...] = ()
    curve_point: CurvePoint | None = None
    similarities: tuple[SimilarityPanel, ...] = ()
    map: FeatureMap | None = None


def write_results(request: RunRequest, folder: RunFolder, results: Results, spent: Spent) -> RunDocument:
    """Writes the folder's report, then its metrics. Raises `UsageError` where a file cannot be written."""
    document = _document(request, folder, results, spent)
    metrics = metrics_document(
        method=request.settings.learner,
        setting=request.plan.setting,
        dataset=request.data.name,
        readings=results.readings,
        seconds_training=document.seconds_training,
        seconds_total=document.seconds_total,
    )
    write_atomically(folder.report_json, document.model_dump_json(indent=1) + "\n")
    write_atomically(folder.report_html, render(document))
    write_atomically(folder.metrics, json.dumps(metrics, indent=1) + "\n")
    return document


def _document(request: RunRequest, folder: RunFolder, results: Results, spent: Spent) -> RunDocument:
    data, plan, settings, readings = request.data, request.plan, request.settings, results.readings
    return RunDocument(
        title=request.title,
        dataset=data.name,
        extractor=data.extractor,
        setting=plan.setting,
        learner=settings.learner,
        seed=settings.seed,
        command=request.command(folder.path),
        bus=results.bus,
        settings={
            **{name: value for name, value in plan.__dict__.items() if name != "setting"},
            "order": request.order,
            **settings.model_dump(mode="json", include=set(DECIDING) - {"topics"}),
        },
        environment=dict(results.environment),
        paper=paper_rows(data.name, plan.setting),
        as_of=figures(readings.as_of),
        recalculated=figures(readings.recalculated),
        forgetting=readings.final_forgetting,
        task_forgetting=readings.task_forgetting,
        paper_forgetting=percent(paper_forgetting(data.name, plan.setting).get("Ours")),
        area=readings.mAUSUC,
        overall=readings.mean_overall,
        by_examples=readings.mean_by_examples,
        windows=tuple(results.windows),
        curve=results.curve,
        curve_point=results.curve_point,
        similarities=results.similarities,
        map=results.map,
        seconds_training=round(sum(line.seconds_training for line in results.windows), 3),
        seconds_total=round(spent.total, 3),
    )


def window_lines(results: Sequence[TaskResult], readings: Readings, spent: Spent) -> list[WindowLine]:
    return [_line(result, readings, index, spent) for index, result in enumerate(results)]


def _line(result: TaskResult, readings: Readings, index: int, spent: Spent) -> WindowLine:
    record = result.record
    counts, early = result.accepted(), record.prequential
    calibration = record.serving.calibration if record.serving is not None else {}
    return WindowLine(
        number=record.number,
        described=counts["attributes"],
        features=counts["features"],
        seen=record.seen,
        unseen=record.unseen,
        digest=record.generation or "",
        prequential_seen=None if early is None else percent(early.seen),
        prequential_unseen=None if early is None else percent(early.unseen),
        losses=dict(record.losses),
        replay_kept=calibration.get("replay_kept"),
        replay_rejected=calibration.get("replay_rejected"),
        seconds_training=round(spent.training.get(record.number, 0.0), 4),
        **window_figures(readings, index),
    )


def window_figures(readings: Readings, index: int) -> dict[str, Any]:
    """The figures of one window, by the field names of `WindowLine`."""
    as_of, recalculated = readings.as_of.windows[index], readings.recalculated.windows[index]
    return {
        "seen_accuracy": as_of.seen,
        "unseen_accuracy": as_of.unseen,
        "harmonic": as_of.harmonic,
        "recalculated_seen": recalculated.seen,
        "recalculated_unseen": recalculated.unseen,
        "recalculated_harmonic": recalculated.harmonic,
        "forgetting": readings.forgetting[index],
        "area": readings.areas[index],
        "overall": readings.overall[index],
        "by_examples": readings.by_examples[index],
    }


def figures(scores: Scores) -> Figures:
    return Figures(mSA=scores.mSA, mUA=scores.mUA, mH=scores.mH)
