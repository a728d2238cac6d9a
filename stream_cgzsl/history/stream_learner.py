"""The function that makes generations: genesis, configuration and windows 1..n in, generation n out.

`apply_window` is the only place where it advances: the learner worker calls it for each new window, restoring for the
windows since the last snapshot, replay for all of them. It knows no bus and no clock.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.linalg import LinAlgError as _LinAlgError  # type: ignore[attr-defined]

from stream_cgzsl.errors import TrainingFailed, UsageError
from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import SILENT, Learner, Monitor, Snapshot, Space
from stream_cgzsl.learners.snapshots import from_bytes, to_bytes
from stream_cgzsl.runtime.malloc import return_large_blocks
from stream_cgzsl.schemas import Genesis
from stream_cgzsl.serving import file
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.generation import Generation, following
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.ids import Ids
from stream_cgzsl.windows.window import Window

REMEMBERED_WINDOWS = 2
"""How many windows with ids back a repeated id is recognised, besides the window itself."""

_OUT_OF_MEMORY = (MemoryError, torch.OutOfMemoryError)
_UNTRAINABLE: tuple[type[Exception], ...] = (TrainingFailed, MemoryError, torch.OutOfMemoryError, _LinAlgError)
"""Errors that a window's own data can cause, so that it would fail again at every start. Any other error is a bug."""


@dataclass(frozen=True)
class Configuration:
    """What decides generations besides the data. Its digest is in every ledger record."""

    learner: str
    options: Mapping[str, Any]
    memory_bytes: int
    decoders: Mapping[str, str] = field(default_factory=dict)  # by role; only where records are not in our format

    def document(self) -> dict[str, Any]:
        decoders = {"decoders": dict(self.decoders)} if self.decoders else {}
        return {"learner": self.learner, "options": dict(self.options), "memory_bytes": self.memory_bytes, **decoders}

    @property
    def digest(self) -> str:
        text = json.dumps(self.document(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Step:
    """What one window does: its number, its kind, and for a rollback the generation it goes back to."""

    number: int
    kind: str
    to: int | None
    configuration: Configuration
    every_window_counts: bool = False  # towards `REMEMBERED_WINDOWS`, as older versions had it


@dataclass(frozen=True)
class Outcome:
    """What a window led to: its generation, the kind it must be committed as, and why it failed if it did."""

    kind: str
    generation: Generation
    error: str | None = None


class StreamLearner:
    """A learner together with what the stream needs around it: live classes and recently accepted ids."""

    def __init__(self, genesis: Genesis, configuration: Configuration, device: str) -> None:
        self._genesis = genesis
        self._device = device
        self.configuration = configuration
        self._learner = self._create(configuration)
        self._ids: list[Ids] = []
        self._generation: Generation | None = None  # the last one, if a delta can follow
        self.number = 0
        self.names: dict[str, str] = {}  # live class -> readable name, or its id

    def _create(self, configuration: Configuration) -> Learner:
        g = self._genesis
        space = Space(g.attributes, g.features, g.signed, g.shared, g.seed)
        return create(configuration.learner, space, configuration.options, self._device)

    @property
    def live(self) -> frozenset[str]:
        return frozenset(self.names)

    @property
    def known_ids(self) -> Ids:
        return Ids.union(self._ids)

    def learn(
        self, kind: str, gathered: Gathered, monitor: Monitor = SILENT, every_window_counts: bool = False
    ) -> Outcome:
        """Takes window `number` + 1. A window that cannot be trained comes back as `failed`, its classes described.

        `failed` may also be asked for, to repeat what happened then. A window that needs too much memory is tried once
        more with half the batch, and `configuration` is then the one that worked. Raises `Cancelled`, after which
        everything is as it was before.
        """
        window = gathered.window
        generation: Generation | None = None
        error: str | None = None
        if kind == "train":
            try:
                generation = self._fit(window, monitor)
            except _UNTRAINABLE as failure:
                kind, error = "failed", f"{type(failure).__name__}: {failure}"
        if generation is None:
            try:
                with _memory_errors():
                    generation = self._following(self._learner.describe(replace(window, features={})))
            except _UNTRAINABLE as failure:
                kind, error = "failed", f"{type(failure).__name__}: {failure}; its classes are not described either"
                window = Window(window.number)
                generation = self._following(self._learner.describe(window))
        for class_id in window.retired:
            self.names.pop(class_id, None)
        for description in window.described:
            self.names[description.class_id] = description.name or description.class_id
        learned = Ids() if kind == "failed" else Ids(gathered.ids)  # what was not learned may be sent again
        if learned or every_window_counts:
            self._ids = [*self._ids, learned][-REMEMBERED_WINDOWS:]
        self._made(generation)
        return Outcome(kind, generation, error)

    def _following(self, made: Generation | Delta) -> Generation:
        return following(self._generation, made)

    def _made(self, generation: Generation) -> None:
        self._generation = generation if generation.incremental else None
        self.number = generation.number

    def _fit(self, window: Window, monitor: Monitor) -> Generation:
        try:
            return self._following(_fit_learner(self._learner, window, monitor))
        except _OUT_OF_MEMORY:
            smaller = self._halved_batch()
            if smaller is None:
                raise
        learner = self._create(smaller)  # outside the except block, where the first try has released its memory
        learner.restore(self._learner.snapshot())
        generation = self._following(_fit_learner(learner, window, monitor))
        self._learner, self.configuration = learner, smaller
        return generation

    def _halved_batch(self) -> Configuration | None:
        """The configuration with half the batch; None for learners without a batch to halve."""
        batch = getattr(getattr(self._learner, "options", None), "batch", 1)
        if batch < 2:
            return None
        return replace(self.configuration, options={**self.configuration.options, "batch": batch // 2})

    def continue_as(self, number: int) -> Outcome:
        """This learner, an earlier one, becomes that of window `number`: a rollback."""
        if self._generation is None:
            generation = self._following(self._learner.describe(Window(number)))
        else:
            generation = replace(self._generation, number=number, delta=None, base=None)
        self._made(generation)
        return Outcome("rollback", generation)

    def with_configuration(self, configuration: Configuration) -> StreamLearner:
        """The same knowledge under another configuration. Raises `UsageError` where a learner cannot take it over."""
        if self.configuration == configuration:
            return self
        other = StreamLearner(self._genesis, configuration, self._device)
        if self.number:
            try:
                other.restore(self.snapshot())
            except ValueError as error:
                raise UsageError(
                    f"this stream has been learned with other settings, and {configuration.learner!r} with "
                    f"{dict(configuration.options)} cannot continue from there: {error}; go back to the old settings, "
                    "or learn the topics again under another --prefix"
                ) from error
        return other

    def generate(self, class_ids: Sequence[str], rows: int) -> npt.NDArray[np.float32] | None:
        """Features of these learned classes as replay generates them; see `Learner.generate`."""
        return self._learner.generate(class_ids, rows)

    def snapshot(self) -> bytes:
        """Everything, as safetensors: the learner's arrays, the id hashes, and JSON for the rest.

        Of a learner that makes deltas also its last generation, which the next one is made from.
        """
        snapshot = self._learner.snapshot()
        arrays = {f"learner/{name}": array for name, array in snapshot.arrays.items()}
        for back, ids in enumerate(self._ids):
            arrays[f"ids/{back}"] = ids.array()
        meta = {"learner": snapshot.meta, "names": self.names, "number": self.number, "windows_of_ids": len(self._ids)}
        if self._generation is not None:
            arrays |= {f"generation/{name}": array for name, array in file.arrays_of(self._generation).items()}
            meta["generation"] = file.meta_of(self._generation)
        return to_bytes(Snapshot(arrays, meta))

    def restore(self, data: bytes) -> None:
        """Becomes the learner that took the snapshot. Raises `ValueError` when it is not one of this stream's."""
        snapshot = from_bytes(data)
        self._learner.restore(Snapshot(_under("learner/", snapshot), snapshot.meta["learner"]))
        made = snapshot.meta.get("generation")
        self._generation = None if made is None else file.assembled(made, _under("generation/", snapshot))
        self._ids = [Ids.of_array(snapshot.arrays[f"ids/{back}"]) for back in range(snapshot.meta["windows_of_ids"])]
        self.names = dict(snapshot.meta["names"])
        self.number = snapshot.meta["number"]


def _under(prefix: str, snapshot: Snapshot) -> dict[str, npt.NDArray[Any]]:
    return {name.removeprefix(prefix): a for name, a in snapshot.arrays.items() if name.startswith(prefix)}


def apply_window(
    learner: StreamLearner | None,
    step: Step,
    gathered: Gathered | None,
    after: Callable[[int], StreamLearner],
    monitor: Monitor = SILENT,
) -> tuple[StreamLearner, Outcome]:
    """Applies one window: the learner after it, and what it led to.

    A rollback continues from the learner `after` an earlier window. Everything else continues from `learner`, the one
    after the window before, with the window's inputs; both may be None for a rollback.
    """
    if step.to is not None:
        learner = after(step.to).with_configuration(step.configuration)
        return learner, learner.continue_as(step.number)
    assert learner is not None and gathered is not None
    learner = learner.with_configuration(step.configuration)
    return learner, learner.learn(step.kind, gathered, monitor, step.every_window_counts)


def _fit_learner(learner: Learner, window: Window, monitor: Monitor) -> Generation | Delta:
    with _memory_errors(), return_large_blocks():
        return learner.fit(window, monitor)


@contextmanager
def _memory_errors() -> Iterator[None]:
    """Raises `MemoryError` for what torch's CPU allocator reports as a plain `RuntimeError`."""
    try:
        yield
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):
            raise
        raise MemoryError(str(error)) from error
