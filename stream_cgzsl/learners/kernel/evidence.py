"""The default learner: a description is the prior of a class mean, and every example is evidence about it.

Its windows cost what came in them: most update what is believed within a frame, and now and then one refreshes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stream_cgzsl.errors import TrainingFailed, UsageError
from stream_cgzsl.learners.interface import SILENT, Learner, Monitor, Snapshot, Space
from stream_cgzsl.learners.kernel.belief import Belief
from stream_cgzsl.learners.kernel.evidence_state import EvidenceState
from stream_cgzsl.learners.kernel.frame import Frame, tensors
from stream_cgzsl.learners.kernel.gaussian_replay import gaussian_features
from stream_cgzsl.learners.kernel.refresh import refreshed
from stream_cgzsl.learners.kernel.update import Update
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.snapshots import apart, together
from stream_cgzsl.learners.statistics.class_statistics import check_length
from stream_cgzsl.learners.statistics.learner import unlearned
from stream_cgzsl.learners.statistics.moments import Moments
from stream_cgzsl.learners.statistics.shared_space import decide_shared
from stream_cgzsl.runtime.devices import choose_device
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.window import Window

FORMAT = 2
"""Of snapshots."""


@dataclass(frozen=True)
class EvidenceOptions:
    """None needs tuning."""

    weights: bool = True  # one learned weight per attribute
    growth: float = 0.05  # by which examples, or classes with examples, grow between two refreshes
    landmarks: int = 1024  # the process is exact up to so many classes with examples; at least one more than attributes
    half_life: float = 0.0  # windows with examples after which an example counts half; 0: for ever


class Evidence(Learner):
    """Memory: class statistics, a frame and what is believed in it. Both are None until a class has examples."""

    name = "evidence"

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        self.space = space
        self.options = parse_options(EvidenceOptions, options, self.name)
        for option, least in (("growth", 0), ("landmarks", 1), ("half_life", 0)):
            value = getattr(self.options, option)
            if not least <= value < float("inf"):
                raise UsageError(f"option {option!r} of learner {self.name!r} must be at least {least}, not {value}")
        self.device = torch.device(choose_device(device))
        self._state = EvidenceState(space, self.options.half_life)
        self._frame: Frame | None = None
        self._belief: Belief | None = None

    def fit(self, window: Window, monitor: Monitor = SILENT) -> Generation | Delta:
        monitor.check()
        try:
            with self._state.all_or_nothing():
                made, frame, belief = self._made(window, monitor)
                monitor.check()
        except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
            raise TrainingFailed(
                f"window {window.number}: learner {self.name!r} found a matrix it cannot solve: {error}"
            ) from error
        self._frame, self._belief = frame, belief
        return made

    def describe(self, window: Window) -> Generation | Delta:
        if window.features:
            raise UsageError(f"window {window.number} has features: it must be fitted, not only described")
        return self.fit(window)

    def _made(self, window: Window, monitor: Monitor) -> tuple[Generation | Delta, Frame | None, Belief | None]:
        """What the window publishes, and the frame and the belief after it. The state is changed."""
        state = self._state
        for description in window.described:
            check_length(description.class_id, "attributes", description.vector, self.space.attributes)
        update = Update(state, window, self.device)
        for class_id, examples in window.features.items():
            if class_id not in state.places:
                raise UsageError(f"window {window.number} has features of class {class_id!r}, which is not described")
            check_length(class_id, "features", examples.rows, self.space.features)
        fresh = Moments.none(self.space.features)
        if window.features:
            fresh = Moments.of(window.features, self.space.features, state.transform, self.device, monitor.check)
        if fresh.counts:
            state.learn(fresh, self.device)
        frame, belief = self._frame, self._belief
        if not state.totals.taught:
            statistics = state.statistics(state.places.class_ids)
            made: Generation | Delta = unlearned(window.number, statistics, decide_shared(statistics), incremental=True)
            frame = belief = None
        elif frame is None or belief is None or (fresh.counts and state.grown(self.options.growth)):
            made, frame, belief = refreshed(
                window.number, state, self._most, self.options.weights, self.device, monitor
            )
        else:
            belief = update.folded(frame, belief, fresh.counts)
            made = update.published(frame, belief)
            if not belief.finite():
                raise _not_finite(window.number, "what it believes")
        for name in ("vectors", "biases", "centre"):
            if not np.isfinite(getattr(made, name, 0.0)).all():
                raise _not_finite(window.number, name)
        return made, frame, belief

    @property
    def _most(self) -> int:
        """Landmarks. No more than attributes could not even span a linear map of these."""
        return max(self.options.landmarks, self.space.attributes + 1)

    def generate(self, class_ids: Sequence[str], rows: int) -> npt.NDArray[np.float32] | None:
        known = [class_id for class_id in class_ids if class_id in self._state.places]
        return gaussian_features(self._state.statistics(known), class_ids, rows, self.device)

    # ---- snapshots

    def snapshot(self) -> Snapshot:
        parts = {"state": self._state.snapshot(), "format": Snapshot({}, {"number": FORMAT})}
        if self._frame is not None and self._belief is not None:
            belief = {name: array.cpu().numpy() for name, array in vars(self._belief).items()}
            parts |= {"frame": self._frame.snapshot(), "belief": Snapshot(belief, {})}
        return together(self.name, self.space, parts)

    def restore(self, snapshot: Snapshot) -> None:
        parts = apart(self.name, self.space, snapshot)
        found = parts["format"].meta["number"] if "format" in parts else 1
        if found != FORMAT:
            raise ValueError(f"the snapshot of {self.name!r} has format {found}; this is {FORMAT}")
        state = EvidenceState.restore(self.space, self.options.half_life, parts["state"])
        frame = belief = None
        if "frame" in parts:
            frame = Frame.restore(parts["frame"], self.device)
            belief = Belief(**tensors(parts["belief"].arrays, self.device))
        self._state, self._frame, self._belief = state, frame, belief


def _not_finite(number: int, what: str) -> TrainingFailed:
    return TrainingFailed(
        f"window {number}: learner {Evidence.name!r} computed {what} that are not finite; the window was not learned"
    )
