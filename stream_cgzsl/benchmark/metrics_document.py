"""`metrics.json`: what a run is judged by, for programs to read."""

from __future__ import annotations

from typing import Any

from stream_cgzsl.benchmark.scores import Readings, Scores


def metrics_document(
    *,
    method: str,
    setting: str,
    dataset: str,
    readings: Readings,
    seconds_training: float,
    seconds_total: float,
) -> dict[str, Any]:
    """The document, JSON-ready. All accuracies, forgetting and mAUSUC are in percent; null where there is no figure.

    `generations` is how many windows were learned; the lists have an entry for each.
    """
    return {
        "method": method,
        "setting": setting,
        "dataset": dataset,
        "generations": len(readings.as_of.windows),
        "as_of": _reading(readings.as_of),
        "recalculated": _reading(readings.recalculated),
        "forgetting": readings.forgotten,
        "mAUSUC": readings.mAUSUC,
        "windows": {"forgetting": list(readings.forgetting), "AUSUC": list(readings.areas)},
        "seconds_training": seconds_training,
        "seconds_total": seconds_total,
    }


def _reading(scores: Scores) -> dict[str, Any]:
    return {
        "mSA": scores.mSA,
        "mUA": scores.mUA,
        "mH": scores.mH,
        "SA": [accuracy.seen for accuracy in scores.windows],
        "UA": [accuracy.unseen for accuracy in scores.windows],
        "H": [accuracy.harmonic for accuracy in scores.windows],
    }
