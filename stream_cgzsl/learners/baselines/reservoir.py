"""Exemplars: a few examples of each class, chosen uniformly from all it has had, as reservoir sampling does.

Each row draws a random key, and the rows with the smallest keys stay: a row's chance does not depend on the window it
came in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from stream_cgzsl.learners.baselines.rows import Rows
from stream_cgzsl.learners.interface import Snapshot
from stream_cgzsl.schemas import Array
from stream_cgzsl.windows.window import Examples


@dataclass(frozen=True, eq=False)
class Reservoir:
    """At most `size` rows of each class. An immutable value."""

    size: int
    rows: Mapping[str, Array]  # [kept, features] float32 each, by increasing key
    keys: Mapping[str, npt.NDArray[np.float64]]  # [kept] each
    tasks: Mapping[str, int]  # the window in which each class was last learned

    @classmethod
    def empty(cls, size: int) -> Reservoir:
        return cls(size, {}, {}, {})

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    def after(self, number: int, examples: Mapping[str, Examples], rng: torch.Generator) -> Reservoir:
        rows, keys, tasks = dict(self.rows), dict(self.keys), dict(self.tasks)
        for class_id in sorted(examples):
            fresh = np.asarray(examples[class_id].rows, np.float32)
            drawn = torch.rand(len(fresh), generator=rng, dtype=torch.float64).numpy()
            if not len(fresh):
                continue
            if class_id in rows:
                fresh = np.concatenate([rows[class_id], fresh])
                drawn = np.concatenate([keys[class_id], drawn])
            kept = np.argsort(drawn, kind="stable")[: self.size]
            rows[class_id], keys[class_id], tasks[class_id] = fresh[kept], drawn[kept], number
        return Reservoir(self.size, rows, keys, tasks)

    def without(self, retired: Collection[str]) -> Reservoir:
        parts = (self.rows, self.keys, self.tasks)
        rows, keys, tasks = ({c: part[c] for c in part if c not in retired} for part in parts)
        return Reservoir(self.size, rows, keys, tasks)  # type: ignore[arg-type]

    def labelled(self, class_ids: Sequence[str], features: int, device: torch.device) -> Rows:
        """All of them, by class, in the order of `class_ids`."""
        examples = {c: Examples(len(self.rows[c]), self.rows[c]) for c in class_ids if c in self.rows}
        return Rows.of(examples, class_ids, features, device)

    def arrays(self) -> dict[str, Array]:
        return {
            **{f"exemplars.{class_id}": rows for class_id, rows in self.rows.items()},
            **{f"keys.{class_id}": keys for class_id, keys in self.keys.items()},
        }

    def meta(self) -> dict[str, int]:
        return dict(self.tasks)

    @classmethod
    def restore(cls, size: int, memory: Snapshot) -> Reservoir:
        """From a memory that has `arrays`, and `meta` under `tasks`. One that was kept larger is cut."""
        tasks = {str(c): int(number) for c, number in memory.meta.get("tasks", {}).items()}
        rows = {c: memory.arrays[f"exemplars.{c}"][:size] for c in tasks}
        return cls(size, rows, {c: memory.arrays[f"keys.{c}"][:size] for c in tasks}, tasks)


def forget(memory: Snapshot, retired: Collection[str]) -> Snapshot:
    """The memory without the exemplars of retired classes."""
    tasks = memory.meta.get("tasks", {})
    gone = {f"{part}.{c}" for c in retired for part in ("exemplars", "keys")}
    arrays = {name: array for name, array in memory.arrays.items() if name not in gone}
    return Snapshot(arrays, {**memory.meta, "tasks": {c: n for c, n in tasks.items() if c not in retired}})
