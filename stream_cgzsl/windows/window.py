"""What a learner is given: one window, in training order, and nothing that depends on how it was delivered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Description:
    """A class as its attributes tell it."""

    class_id: str
    vector: Array  # [attributes] float32
    name: str | None = None


@dataclass(frozen=True)
class Examples:
    """The features of one class in one window: `count` arrived, `rows` of them were kept, ordered by their hash."""

    count: int
    rows: Array  # [kept, features] float32


@dataclass(frozen=True)
class Window:
    """Window `number`: classes described (sorted by id), classes retired (sorted), features by class (sorted by id).

    A class retired and described again inside one window is in both: it is retired first, then starts fresh.
    """

    number: int
    described: tuple[Description, ...] = ()
    retired: tuple[str, ...] = ()
    features: Mapping[str, Examples] = field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls,
        number: int,
        attributes: Mapping[str, Array],
        features: Mapping[str, Array],
        retired: tuple[str, ...] = (),
    ) -> Window:
        """A window straight from arrays, for library users: rows are taken in the order given, all are kept."""
        return cls(
            number,
            tuple(Description(c, np.asarray(attributes[c], np.float32)) for c in sorted(attributes)),
            tuple(sorted(retired)),
            {c: Examples(len(features[c]), np.asarray(features[c], np.float32)) for c in sorted(features)},
        )
