"""A delta: how a generation differs from the one before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stream_cgzsl.schemas import Array


@dataclass(frozen=True, eq=False)
class Delta:
    """Makes generation `number` from generation `base`: the rows of classes that are new or changed, sorted by id, and
    the classes that are gone. Everything else (centre, metric, transform, calibration) stays as it is."""

    number: int
    base: int
    class_ids: tuple[str, ...]
    seen: npt.NDArray[np.bool_]  # [changed]
    vectors: Array  # [changed, features]
    biases: Array  # [changed]
    examples: npt.NDArray[np.int64] | None = None  # [changed]
    withdrawn: tuple[str, ...] = ()
