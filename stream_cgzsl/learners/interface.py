"""What every learner offers: windows in, generations out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from stream_cgzsl.errors import Cancelled
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.window import Window


@dataclass(frozen=True)
class Space:
    """What a stream's genesis fixes. `shared`: attributes live in the feature space; None: find out."""

    attributes: int
    features: int
    signed: bool
    shared: bool | None = None
    seed: int = 0


@dataclass(frozen=True)
class Snapshot:
    """All a learner knows between two windows: named arrays and a JSON-ready object. Never pickled."""

    arrays: Mapping[str, npt.NDArray[Any]]
    meta: Mapping[str, Any]


@dataclass(frozen=True)
class Progress:
    """Progress of training: the step, and the latest value of each loss term."""

    step: int
    steps: int
    losses: Mapping[str, float] = field(default_factory=dict)


class Monitor:
    """Lets the caller of `fit` watch and cancel it. This one does neither."""

    def progress(self, progress: Progress) -> None:
        """Called now and then from the training loop; must return quickly."""

    def cancelled(self) -> bool:
        """Asked at every training step; True makes `fit` raise `Cancelled`."""
        return False

    def check(self) -> None:
        if self.cancelled():
            raise Cancelled("training was cancelled; the window will be trained again from its ranges")


class Losses(Monitor):
    """Remembers the last value of each loss term."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def progress(self, progress: Progress) -> None:
        self._last.update(progress.losses)

    def last(self) -> dict[str, float]:
        """Those that are finite."""
        return {term: value for term, value in self._last.items() if math.isfinite(value)}


SILENT = Monitor()

Keeps = Literal["nothing", "exemplars", "everything"]
"""Of the examples it has learned: none, a bounded number of each class, or all."""


class Learner(ABC):
    """A learner holds moments and weights, and no example unless it says so in `keeps`.

    The result of `fit` and `describe` depends on nothing but the space, the options, and the windows given so far: same
    bytes in the same environment, also when the learner was restored from a snapshot between any two windows.
    """

    name: str
    keeps: ClassVar[Keeps] = "nothing"

    @abstractmethod
    def fit(self, window: Window, monitor: Monitor = SILENT) -> Generation | Delta:
        """Learns a window. Raises `Cancelled`; the learner is then as it was before, and so it is after any error.

        A `Delta` says how the generation differs from the one that the learner made last; the first is never one.
        """

    @abstractmethod
    def describe(self, window: Window) -> Generation | Delta:
        """Takes the window's described and retired classes, without training; its features must be empty."""

    @abstractmethod
    def snapshot(self) -> Snapshot: ...

    @abstractmethod
    def restore(self, snapshot: Snapshot) -> None:
        """Becomes the learner that took the snapshot. Raises `ValueError` when it is of another learner or space."""

    def generate(self, class_ids: Sequence[str], rows: int) -> npt.NDArray[np.float32] | None:  # noqa: ARG002
        """Replayed features, `rows` of each of these learned classes (at least one): [classes, rows, features].

        They are in the published feature space, at length 1, and the same ones every time; the learner does not
        change. None from a learner without replay. Raises `UsageError` for a class without examples.
        """
        return None


Factory = Callable[[Space, Mapping[str, Any], str], Learner]
"""(space, options, device) -> learner"""


def empty_vectors(classes: int, features: int) -> npt.NDArray[np.float32]:
    """What a generation that is not servable publishes in place of projections."""
    return np.zeros((classes, features), np.float32)
