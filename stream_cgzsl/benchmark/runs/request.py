"""The request for a run: which learner, on which data set, in which setting."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.protocols import AnyPlan
from stream_cgzsl.learners import create, keeps
from stream_cgzsl.runtime.devices import choose_device
from stream_cgzsl.runtime.secrets import without_password
from stream_cgzsl.runtime.settings import Settings

_NEVER_SECONDS = 1e9
_MOST_RETRAINED = 4
"""Windows that a resumed run may have to train again."""

_ROW_OVERHEAD_BYTES = 1000  # more than an evaluator counts for a row in addition to its numbers

DECIDING = ("learner", "options", "seed", "shared", "memory_gb", "device", "threads", "prefix", "topics")
"""The settings that decide a run's results, or where its topics are."""


@dataclass(frozen=True, eq=False)
class RunRequest:
    """Without `bus`, a run uses a SQLite file in its own folder.

    `named` and `sizes` are for the command line in the report: its words for the data set, and the plan's sizes it
    gives. `note` completes the title.
    """

    data: Dataset
    plan: AnyPlan
    settings: Settings
    order: int | None = None
    bus: str | None = None
    named: tuple[str, ...] = ()
    sizes: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def title(self) -> str:
        kept = keeps(self.settings.learner)
        learner = self.settings.learner if kept == "nothing" else f"{self.settings.learner}, which keeps {kept}"
        return ", ".join(filter(None, (f"{self.data.name}, {self.plan.setting}: {learner}", self.note)))

    def check(self) -> None:
        """Raises `UsageError` for a learner, an option or a device that does not exist."""
        create(self.settings.learner, self.data.space(), self.settings.options, choose_device(self.settings.device))

    def identity(self) -> dict[str, Any]:
        """What distinguishes this run from others; JSON-ready. Without the path of its folder, which may be moved."""
        return {
            **data_identity(self.data),
            **self.plan.__dict__,
            "order": self.order,
            "bus": None if self.bus is None else without_password(self.bus),
            **self.settings.model_dump(mode="json", include=set(DECIDING)),
        }

    def worker_settings(self, bus: str) -> Settings:
        """The settings of the run's workers on that bus.

        Only task boundaries close windows, an unusable record ends the run, and the whole test set is evaluated,
        however large. Without --snapshot-every, some windows have a snapshot, the last one among them.
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
                "allow_exemplars": True,  # a run is there to compare, and says so
                "quiet_seconds": _NEVER_SECONDS,
                "count": None,
                "max_age": None,
                "event_time": None,
                "dead_letter_limit": 0,
                "snapshot_every": every if every is not None else _snapshot_every(self.plan.tasks),
                "holdout_gb": max(self.settings.holdout_gb, tests * (4 * space.features + _ROW_OVERHEAD_BYTES) / 1e9),
            }
        )

    def command(self, out: Path, *verb: str) -> str:
        """The command line for this request: `run`, or another command with the same flags."""
        words = ["stream-cgzsl", *(verb or ("run",)), *self.named, "--setting", self.plan.setting]
        words += ["--out", str(out)]
        for name, value in self.sizes.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        words += [] if self.order is None else ["--order-seed", str(self.order)]
        words += [] if self.bus is None else ["--bus", without_password(self.bus)]
        names = ("prefix", "learner", "seed", "memory_gb", "device", "threads", "shared")
        words += setting_words(self.settings, *names)
        for table in ("options", "topics"):
            for name, value in getattr(self.settings, table).items():
                words += [f"--{table}", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
        return shlex.join(words)


def data_identity(data: Dataset) -> dict[str, str]:
    """What distinguishes a data set from others."""
    return {"dataset": data.name, "extractor": data.extractor, "data digest": data.digest[:16]}


def setting_words(settings: Settings, *names: str) -> list[str]:
    """The flags of these settings, without those that have their defaults."""
    words: list[str] = []
    defaults = Settings()
    for name in names:
        value, flag = getattr(settings, name), name.replace("_", "-")
        if value != getattr(defaults, name):
            words += [f"--{'' if value else 'no-'}{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    return words


def _snapshot_every(tasks: int) -> int:
    """Snapshots are most of what a commit writes; without one, a resumed run trains a few windows again."""
    return max(every for every in range(1, _MOST_RETRAINED + 2) if tasks % every == 0)
