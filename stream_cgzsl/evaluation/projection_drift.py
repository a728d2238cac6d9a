"""Projection drift: by which angle the projections turned from one generation to another."""

from __future__ import annotations

import numpy as np

from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.generation import Generation

_BATCH_ROWS = 1024  # in float64: a few megabytes, however many classes there are


def angles(a: Array, b: Array) -> Array:
    """The angle in radians between each row of `a` and the same row of `b`; exact for tiny angles, too."""
    found = [np.zeros(0)]
    for start in range(0, len(a), _BATCH_ROWS):
        u, v = (_unit(rows[start : start + _BATCH_ROWS].astype(np.float64)) for rows in (a, b))
        chord = np.linalg.norm(u - v, axis=1)
        found.append(2 * np.arcsin(np.minimum(chord / 2, 1.0)))
    return np.concatenate(found)


def _unit(rows: Array) -> Array:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-30))


def projection_drift(before: Generation | None, after: Generation) -> dict[str, float]:
    """The angle in radians by which the projection of each class turned, by class id in order.

    Only classes that both generations have and, where a delta made the second from the first, that it changed; empty if
    one of them is not servable.
    """
    if before is None or not (before.servable and after.servable):
        return {}
    delta = after.delta if after.base == before.number else None
    ids, vectors = (after.class_ids, after.vectors) if delta is None else (delta.class_ids, delta.vectors)
    was = before.rows_of(ids)
    both = [index for index, class_id in enumerate(ids) if class_id in was]
    class_ids = [ids[index] for index in both]
    if not both:
        return {}
    drift = angles(np.stack([was[class_id] for class_id in class_ids]), vectors[both])
    return dict(zip(class_ids, drift.tolist(), strict=True))
