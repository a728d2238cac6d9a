"""What somebody wants to know: how well a learner does on a data set, in a setting."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.settings import Plan
from stream_cgzsl.bus.secrets import without_password
from stream_cgzsl.settings import Settings

_NEVER_SECONDS = 1e9

DECIDING = ("learner", "options", "seed", "shared", "memory_gb", "device", "threads", "prefix", "topics")
"""The settings that decide what a run comes to, or where it is."""


@dataclass(frozen=True, eq=False)
class RunRequest:
    """`named` is how a command line names the data set. Without `bus`, a run has a SQLite file in its own folder."""

    data: Dataset
    plan: Plan
    settings: Settings
    order: int | None = None
    bus: str | None = None
    named: tuple[str, ...] = ()

    def identity(self) -> dict[str, Any]:
        """What makes it this run and no other; JSON-ready. The bus's own file is no part of it: folders can be moved."""
        return {
            "dataset": self.data.name,
            "extractor": self.data.extractor,
            "data digest": digest(self.data)[:16],
            **self.plan.__dict__,
            "order": self.order,
            "bus": None if self.bus is None else without_password(self.bus),
            **self.settings.model_dump(mode="json", include=set(DECIDING)),
        }

    def learning(self, bus: str) -> Settings:
        """The settings of the run's workers on that bus. Windows are closed by the tasks' ends alone."""
        space = self.data.space()
        return self.settings.model_copy(
            update={
                "bus": bus,
                "attributes": space.attributes,
                "features": space.features,
                "signed": space.signed,
                "quiet_seconds": _NEVER_SECONDS,
                "count": None,
                "max_age": None,
                "event_time": None,
            }
        )

    def command(self, out: Path) -> str:
        """A command line that asks for the same."""
        plan, settings = self.plan, self.settings
        words = ["stream-cgzsl", "run", *self.named, "--setting", plan.setting, "--out", str(out)]
        words += ["--tasks", str(plan.tasks), "--seen", str(plan.seen)]
        words += [] if plan.setting == "static" else ["--unseen", str(plan.unseen)]
        words += [] if self.order is None else ["--order-seed", str(self.order)]
        words += [] if self.bus is None else ["--bus", without_password(self.bus)]
        usual = Settings()
        for name in ("prefix", "learner", "seed", "memory_gb", "device", "threads"):
            value = getattr(settings, name)
            if value != getattr(usual, name):
                words += [f"--{name.replace('_', '-')}", str(value)]
        words += [] if settings.shared is None else ["--shared" if settings.shared else "--no-shared"]
        for table in ("options", "topics"):
            for name, value in getattr(settings, table).items():
                words += [f"--{table}", f"{name}={_toml(value)}"]
        return shlex.join(words)


def digest(data: Dataset) -> str:
    """sha256 of everything a run takes from a data set."""
    found = hashlib.sha256("\0".join(data.class_ids).encode())
    for array in (data.attributes, data.features, data.labels, data.train, data.test_seen, data.test_unseen):
        found.update(str(array.shape).encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
