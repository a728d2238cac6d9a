"""The function that makes generations: genesis, configuration and windows 1..n in, generation n out.

The learner worker runs it forward, restoring runs it again over the windows since the last snapshot, replay runs it
over all of them. It knows no bus and no clock.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.linalg import LinAlgError as _LinAlgError  # type: ignore[attr-defined]

from stream_cgzsl.errors import TrainingFailed
from stream_cgzsl.generation import Generation
from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import SILENT, Learner, Monitor, Snapshot, Space
from stream_cgzsl.learners.snapshots import from_bytes, to_bytes
from stream_cgzsl.memory import large_blocks_given_back
from stream_cgzsl.schemas import Genesis
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.window import Window

_REMEMBERED_WINDOWS = 2
"""How many windows back a repeated id is recognised, besides the window itself."""

_OUT_OF_MEMORY = (MemoryError, torch.OutOfMemoryError)
_UNTRAINABLE: tuple[type[Exception], ...] = (TrainingFailed, MemoryError, torch.OutOfMemoryError, _LinAlgError)
"""What a window's own data can lead to. It would come back at every start; any other error is a mistake of ours."""


@dataclass(frozen=True)
class Configuration:
    """What decides generations besides the data. Its digest stands in every ledger record."""

    learner: str
    options: Mapping[str, Any]
    memory_bytes: int

    def document(self) -> dict[str, Any]:
        return {"learner": self.learner, "options": dict(self.options), "memory_bytes": self.memory_bytes}

    @property
    def digest(self) -> str:
        text = json.dumps(self.document(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """What a window led to: the generation, as which kind it must be committed, and which classes left."""

    kind: str
    generation: Generation
    withdrawn: tuple[str, ...]
    error: str | None = None


class Lineage:
    """A learner with what surrounds it: the live classes and the ids seen lately."""

    def __init__(self, genesis: Genesis, configuration: Configuration, device: str) -> None:
        self._space = Space(genesis.attributes, genesis.features, genesis.signed, genesis.shared, genesis.seed)
        self._device = device
        self.configuration = configuration
        self._learner = self._create(configuration)
        self._ids: list[frozenset[bytes]] = []
        self.number = 0
        self.names: dict[str, str] = {}  # live class -> readable name, or its id

    @property
    def live(self) -> frozenset[str]:
        return frozenset(self.names)

    @property
    def known_ids(self) -> frozenset[bytes]:
        return frozenset().union(*self._ids)

    def apply(self, kind: str, gathered: Gathered, monitor: Monitor = SILENT) -> Outcome:
        """Takes window `number` + 1. A window that cannot be trained comes back as `failed`, its classes described.

        `failed` may also be asked for, to do again what was done then. A window that needs too much memory is tried
        once more with half the batch, and `configuration` is then the one that worked. Raises `Cancelled`, after which
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
                    generation = self._learner.describe(replace(window, features={}))
            except _UNTRAINABLE as failure:
                kind, error = "failed", f"{type(failure).__name__}: {failure}; its classes are not described either"
                window = Window(window.number)
                generation = self._learner.describe(window)
        withdrawn = tuple(c for c in window.retired if c in self.names and c not in generation.class_ids)
        for class_id in window.retired:
            self.names.pop(class_id, None)
        for description in window.described:
            self.names[description.class_id] = description.name or description.class_id
        learned = frozenset[bytes]() if kind == "failed" else gathered.ids  # what was not learned may be sent again
        self._ids = [*self._ids, learned][-_REMEMBERED_WINDOWS:]
        self.number = window.number
        return Outcome(kind, generation, withdrawn, error)

    def _fit(self, window: Window, monitor: Monitor) -> Generation:
        try:
            return _fitted(self._learner, window, monitor)
        except _OUT_OF_MEMORY:
            smaller = self._halved()
            if smaller is None:
                raise
        learner = self._create(smaller)  # only here has the first try let go of its memory
        learner.restore(self._learner.snapshot())
        generation = _fitted(learner, window, monitor)
        self._learner, self.configuration = learner, smaller
        return generation

    def _halved(self) -> Configuration | None:
        """The configuration with half the batch; None for learners that have none to halve."""
        batch = getattr(getattr(self._learner, "options", None), "batch", 1)
        if batch < 2:
            return None
        return replace(self.configuration, options={**self.configuration.options, "batch": batch // 2})

    def _create(self, configuration: Configuration) -> Learner:
        return create(configuration.learner, self._space, configuration.options, self._device)

    def roll(self, number: int) -> Outcome:
        """This lineage, an earlier one, becomes window `number` as it is: what a rollback does."""
        self.number = number
        return Outcome("rollback", self._learner.describe(Window(number)), ())

    def generate(self, class_ids: Sequence[str], rows: int) -> npt.NDArray[np.float32] | None:
        """What the learner would replay of these learned classes; see `Learner.generate`."""
        return self._learner.generate(class_ids, rows)

    def snapshot(self) -> bytes:
        """Everything, as safetensors: the learner's arrays, the id hashes, and JSON for the rest."""
        snapshot = self._learner.snapshot()
        arrays = {f"learner/{name}": array for name, array in snapshot.arrays.items()}
        for back, ids in enumerate(self._ids):
            arrays[f"ids/{back}"] = np.frombuffer(b"".join(sorted(ids)), np.uint8)
        meta = {"learner": snapshot.meta, "names": self.names, "number": self.number, "windows_of_ids": len(self._ids)}
        return to_bytes(Snapshot(arrays, meta))

    def restore(self, data: bytes) -> None:
        """Becomes what took the snapshot. Raises `ValueError` when the bytes are not one of this stream's."""
        snapshot = from_bytes(data)
        prefix = "learner/"
        arrays = {n.removeprefix(prefix): a for n, a in snapshot.arrays.items() if n.startswith(prefix)}
        self._learner.restore(Snapshot(arrays, snapshot.meta["learner"]))
        self._ids = [
            frozenset(bytes(row) for row in snapshot.arrays[f"ids/{back}"].reshape(-1, 16))
            for back in range(snapshot.meta["windows_of_ids"])
        ]
        self.names = dict(snapshot.meta["names"])
        self.number = snapshot.meta["number"]


def _fitted(learner: Learner, window: Window, monitor: Monitor) -> Generation:
    with _memory_errors(), large_blocks_given_back():
        return learner.fit(window, monitor)


@contextmanager
def _memory_errors() -> Iterator[None]:
    """Torch's allocator on the CPU has no error of its own for this, only words."""
    try:
        yield
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):
            raise
        raise MemoryError(str(error)) from error
