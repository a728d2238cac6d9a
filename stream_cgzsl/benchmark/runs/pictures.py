"""The data of a report's pictures: which classes they show, and what of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.runs.feature_map import feature_map
from stream_cgzsl.benchmark.task import Task
from stream_cgzsl.evaluation.curve import Curve
from stream_cgzsl.report.document import CurvePoint, FeatureMap
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.generation import Generation

_PANELS = 3
_MAP_CLASSES = 6
_MAP_ROWS = 30
_CURVE_POINTS = 200


def followed_classes(tasks: Sequence[Task], data: Dataset) -> list[str]:
    """Two classes that are never learned, and one that is described first and learned later, where there are such."""
    learned_in = {class_id: task.number for task in reversed(tasks) for class_id in task.learned}  # the first time
    described = [(class_id, task.number) for task in tasks for class_id in task.described]
    tested = [(class_id, number) for class_id, number in described if len(data.test_rows(class_id))]
    never = [class_id for class_id, _ in tested if class_id not in learned_in]
    later = [class_id for class_id, number in tested if learned_in.get(class_id, 0) > number]
    return (never[: _PANELS - 1] + later)[:_PANELS]


def replay_map(
    tasks: Sequence[Task], data: Dataset, final: Generation, generate: Callable[[Sequence[str], int], Array | None]
) -> FeatureMap | None:
    """Test features and replayed ones of a few seen classes, from the first to the last; None without replay."""
    seen = {class_id for class_id, flag in zip(final.class_ids, final.seen, strict=True) if flag}
    learned = dict.fromkeys(c for task in tasks for c in task.learned if c in seen and len(data.test_rows(c)))
    if not learned:
        return None
    places = np.unique(np.linspace(0, len(learned) - 1, _MAP_CLASSES).round().astype(int))
    chosen = [list(learned)[place] for place in places]
    replayed = generate(chosen, _MAP_ROWS)
    if replayed is None:
        return None
    return feature_map(chosen, [final.published(data.test(class_id)[:_MAP_ROWS]) for class_id in chosen], replayed)


def curve_points(curve: Curve | None) -> tuple[tuple[CurvePoint, ...], CurvePoint | None]:
    """The curve in percent, thinned where it has very many points, and its point at the learned offset."""
    if curve is None:
        return (), None
    places = np.unique(np.linspace(0, len(curve.seen) - 1, min(_CURVE_POINTS, len(curve.seen))).round().astype(int))
    points = tuple(_point(seen, unseen) for seen, unseen in zip(curve.seen[places], curve.unseen[places], strict=True))
    return points, _point(*curve.at(0.0))


def _point(seen: float, unseen: float) -> CurvePoint:
    return CurvePoint(seen=round(100 * float(seen), 4), unseen=round(100 * float(unseen), 4))
