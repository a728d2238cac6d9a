"""What a run's folder tells in the end: the report's document and the metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stream_cgzsl.benchmark.metrics_document import metrics_document
from stream_cgzsl.benchmark.paper import paper_rows
from stream_cgzsl.benchmark.run_folder import RunFolder, Spent
from stream_cgzsl.benchmark.run_record import Learned, accepted, percent
from stream_cgzsl.benchmark.run_request import DECIDING, RunRequest
from stream_cgzsl.benchmark.scores import Readings, Scores
from stream_cgzsl.report.document import CurvePoint, FeatureMap, Figures, RunDocument, SimilarityPanel, WindowLine
from stream_cgzsl.report.page import render
from stream_cgzsl.whole_file import write_whole


@dataclass(frozen=True)
class Results:
    """All that came of a run, measured or drawn."""

    readings: Readings
    windows: Sequence[WindowLine]
    environment: Mapping[str, Any]
    bus: str
    curve: tuple[CurvePoint, ...] = ()
    curve_point: CurvePoint | None = None
    similarities: tuple[SimilarityPanel, ...] = ()
    map: FeatureMap | None = None


def write_results(request: RunRequest, folder: RunFolder, results: Results, spent: Spent) -> RunDocument:
    """Writes the folder's report and metrics, these last. Raises `UsageError` where one cannot be written."""
    document = _document(request, folder, results, spent)
    metrics = metrics_document(
        method=request.settings.learner,
        setting=request.plan.setting,
        dataset=request.data.name,
        readings=results.readings,
        seconds_training=document.seconds_training,
        seconds_total=document.seconds_total,
    )
    write_whole(folder.report_json, document.model_dump_json(indent=1) + "\n")
    write_whole(folder.report_html, render(document))
    write_whole(folder.metrics, json.dumps(metrics, indent=1) + "\n")
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
        forgetting=readings.forgotten,
        area=readings.mAUSUC,
        windows=tuple(results.windows),
        curve=results.curve,
        curve_point=results.curve_point,
        similarities=results.similarities,
        map=results.map,
        seconds_training=round(sum(line.seconds_training for line in results.windows), 3),
        seconds_total=round(spent.total, 3),
    )


def window_lines(windows: Sequence[Learned], readings: Readings, spent: Spent) -> list[WindowLine]:
    return [_line(window, readings, place, spent) for place, window in enumerate(windows)]


def _line(window: Learned, readings: Readings, place: int, spent: Spent) -> WindowLine:
    record = window.record
    counts, early = accepted(record), record.prequential
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
        **accuracies(readings, place),
    )


def accuracies(readings: Readings, place: int) -> dict[str, float | None]:
    """The figures of one window, by the names a `WindowLine` has for them."""
    now, again = readings.as_of.windows[place], readings.recalculated.windows[place]
    return {
        "seen_accuracy": now.seen,
        "unseen_accuracy": now.unseen,
        "harmonic": now.harmonic,
        "recalculated_seen": again.seen,
        "recalculated_unseen": again.unseen,
        "recalculated_harmonic": again.harmonic,
        "forgetting": readings.forgetting[place],
        "area": readings.areas[place],
    }


def figures(scores: Scores) -> Figures:
    return Figures(mSA=scores.mSA, mUA=scores.mUA, mH=scores.mH)
