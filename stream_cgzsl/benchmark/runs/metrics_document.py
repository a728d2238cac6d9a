"""`metrics.json`: the figures of a run, for programs to read."""

from __future__ import annotations

from typing import Any

from stream_cgzsl.benchmark.scores import Readings, Scores
from stream_cgzsl.benchmark.trickle import TRICKLE
from stream_cgzsl.schemas import EXAMPLE_BUCKETS


def metrics_document(
    *, method: str, setting: str, dataset: str, readings: Readings, seconds_training: float, seconds_total: float
) -> dict[str, Any]:
    """The document, JSON-ready. All accuracies, forgetting and mAUSUC are in percent; null where there is no figure.

    `task_forgetting` is negative where tasks are better than they ever were. `generations` is the number of windows
    learned; the lists have one entry per window. In the trickle setting there is also the accuracy over all described
    classes, and by how many examples a class has had.
    """
    document: dict[str, Any] = {
        "method": method,
        "setting": setting,
        "dataset": dataset,
        "generations": len(readings.as_of.windows),
        "as_of": _reading(readings.as_of),
        "recalculated": _reading(readings.recalculated),
        "forgetting": readings.final_forgetting,
        "task_forgetting": readings.task_forgetting,
        "mAUSUC": readings.mAUSUC,
        "windows": {"forgetting": list(readings.forgetting), "AUSUC": list(readings.areas)},
        "seconds_training": seconds_training,
        "seconds_total": seconds_total,
    }
    if setting == TRICKLE:
        document["overall"], document["by_examples"] = readings.mean_overall, readings.mean_by_examples
        document["windows"]["overall"] = list(readings.overall)
        document["windows"]["by_examples"] = {
            bucket: [found.get(bucket) for found in readings.by_examples] for bucket in EXAMPLE_BUCKETS
        }
    return document


def _reading(scores: Scores) -> dict[str, Any]:
    return {
        "mSA": scores.mSA,
        "mUA": scores.mUA,
        "mH": scores.mH,
        "SA": [accuracy.seen for accuracy in scores.windows],
        "UA": [accuracy.unseen for accuracy in scores.windows],
        "H": [accuracy.harmonic for accuracy in scores.windows],
    }
