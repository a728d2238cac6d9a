"""Real and replayed features of a few classes in one plane: do the replayed ones lie among the real ones?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_cgzsl.report.document import FeatureMap, MapPoint
from stream_cgzsl.schemas import Array


def feature_map(class_ids: Sequence[str], real: Sequence[Array], replayed: Array) -> FeatureMap:
    """Projects onto the first two principal components of the real features.

    `real` is [rows, features] for each class, `replayed` [classes, rows, features]; all are published features.
    """
    rows = np.concatenate(real).astype(np.float64)
    centre = rows.mean(axis=0)
    plane = _fix_signs(np.linalg.svd(rows - centre, full_matrices=False)[2][:2])  # [2, features]
    points = [
        MapPoint(x=round(float(x), 6), y=round(float(y), 6), class_index=index, replayed=generated)
        for generated, groups in ((False, real), (True, replayed))
        for index, group in enumerate(groups)
        for x, y in _pad((group - centre) @ plane.T)
    ]
    return FeatureMap(class_ids=tuple(class_ids), points=tuple(points))


def _fix_signs(directions: Array) -> Array:
    """The sign of a singular vector is arbitrary: the largest number of each is made positive."""
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
    return directions * np.where(largest < 0, -1.0, 1.0)


def _pad(points: Array) -> Array:
    """[rows, 2], also where the features have a single dimension."""
    return points if points.shape[1] == 2 else np.column_stack([points, np.zeros((len(points), 2 - points.shape[1]))])
