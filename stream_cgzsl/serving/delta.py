"""A delta: how a generation differs from the one before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stream_cgzsl.schemas import Array


@dataclass(frozen=True, eq=False)
class Delta:
    """Makes generation `number` from generation `number` - 1: the rows of classes that are new or changed, sorted by
    id, and the classes that are gone (sorted). All else (centre, metric, transform, calibration) stays as it is."""

    number: int
    class_ids: tuple[str, ...]
    seen: npt.NDArray[np.bool_]  # [changed]
    vectors: Array  # [changed, features] float32
    biases: Array  # [changed] float32
    examples: npt.NDArray[np.int64]  # [changed]
    withdrawn: tuple[str, ...] = ()
