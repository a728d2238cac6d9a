"""Generations small enough to compute with by hand: features have two numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stream_cgzsl.serving.generation import Generation

AXES = np.eye(2, dtype=np.float32)


def generation(
    number: int,
    vectors: dict[str, Sequence[float]],
    seen: str = "",
    biases: dict[str, float] | None = None,
    **others: Any,
) -> Generation:
    """Classes are single letters; `seen` names those that are seen."""
    class_ids = tuple(sorted(vectors))
    return Generation(
        number,
        class_ids,
        np.array([class_id in seen for class_id in class_ids]),
        np.array([vectors[class_id] for class_id in class_ids], np.float32).reshape(len(class_ids), 2),
        np.array([(biases or {}).get(class_id, 0.0) for class_id in class_ids], np.float32),
        np.zeros(2, np.float32),
        **others,
    )


def degrees(*angles: float) -> list[list[float]]:
    """Points on the unit circle."""
    return [[float(np.cos(np.deg2rad(angle))), float(np.sin(np.deg2rad(angle)))] for angle in angles]
