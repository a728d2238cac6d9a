"""What somebody wants to know: how well a learner does on a data set, in a setting."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.settings import Plan
from stream_cgzsl.bus.secrets import without_password
from stream_cgzsl.environment import choose_device
from stream_cgzsl.learners import create
from stream_cgzsl.settings import Settings

_NEVER_SECONDS = 1e9
_REPEATED_AT_MOST = 4
"""Windows that a run which goes on may have to train again."""

_BESIDE_BYTES = 1000  # more than an evaluator counts for a row besides its numbers

DECIDING = ("learner", "options", "seed", "shared", "memory_gb", "device", "threads", "prefix", "topics")
"""The settings that decide what a run comes to, or where it is."""


@dataclass(frozen=True, eq=False)
class RunRequest:
    """Without `bus`, a run has a SQLite file in its own folder.

    `named` and `sizes` are for people: how a command line names the data set, and what it says of the plan. `note` is
    what a title tells besides data, setting and learner.
    """

    data: Dataset
    plan: Plan
    settings: Settings
    order: int | None = None
    bus: str | None = None
    named: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    note: str = ""

    @property
    def title(self) -> str:
        return ", ".join(filter(None, (f"{self.data.name}, {self.plan.setting}: {self.settings.learner}", self.note)))

    def check(self) -> None:
        """Raises `UsageError` for a learner, an option or a device there is not."""
        create(self.settings.learner, self.data.space(), self.settings.options, choose_device(self.settings.device))

    def identity(self) -> dict[str, Any]:
        """What makes it this run and no other; JSON-ready. The file in its folder is no part of it: folders move."""
        return {
            "dataset": self.data.name,
            "extractor": self.data.extractor,
            "data digest": self.data.digest[:16],
            **self.plan.__dict__,
            "order": self.order,
            "bus": None if self.bus is None else without_password(self.bus),
            **self.settings.model_dump(mode="json", include=set(DECIDING)),
        }

    def learning(self, bus: str) -> Settings:
        """The settings of the run's workers on that bus.

        Windows are closed by the ends of tasks alone, a record that cannot be used ends the run, and the whole test set
        is evaluated, however large. Unless somebody says how often, some windows have a snapshot, the last among them.
        """
        space = self.data.space()
        tests = len(self.data.test_seen) + len(self.data.test_unseen)
        every = self.settings.snapshot_every if "snapshot_every" in self.settings.model_fields_set else None
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
                "dead_letter_limit": 0,
                "snapshot_every": every if every is not None else _some_of(self.plan.tasks),
                "holdout_gb": max(self.settings.holdout_gb, tests * (4 * space.features + _BESIDE_BYTES) / 1e9),
            }
        )

    def command(self, out: Path, *verb: str) -> str:
        """A command line that asks for the same: `run`, or another verb of the same flags."""
        settings, usual = self.settings, Settings()
        words = ["stream-cgzsl", *(verb or ("run",)), *self.named, "--setting", self.plan.setting]
        words += ["--out", str(out)]
        for name, value in self.sizes.items():
            words += [f"--{name}", str(value)]
        words += [] if self.order is None else ["--order-seed", str(self.order)]
        words += [] if self.bus is None else ["--bus", without_password(self.bus)]
        for name in ("prefix", "learner", "seed", "memory_gb", "device", "threads"):
            value = getattr(settings, name)
            if value != getattr(usual, name):
                words += [f"--{name.replace('_', '-')}", str(value)]
        words += [] if settings.shared is None else ["--shared" if settings.shared else "--no-shared"]
        for table in ("options", "topics"):
            for name, value in getattr(settings, table).items():
                words += [f"--{table}", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
        return shlex.join(words)


def _some_of(tasks: int) -> int:
    """Every so many windows have a snapshot: it is most of what a commit writes, and a restart trains a few again."""
    return max(every for every in range(1, _REPEATED_AT_MOST + 2) if tasks % every == 0)
