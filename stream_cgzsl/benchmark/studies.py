"""What people ask with many runs: which rows a study has, and what each of them changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stream_cgzsl.benchmark.paper import paper_ablation, paper_rows
from stream_cgzsl.benchmark.run_request import RunRequest
from stream_cgzsl.benchmark.settings import SETTINGS, plan_for
from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners import BOUNDS, LEARNERS, create
from stream_cgzsl.report.document import Figures

ABLATION: Mapping[str, tuple[str, ...]] = {
    "everything": (),
    "w/o replay": ("replay",),
    "w/o L_sal": ("sal",),
    "w/o L_nuclear": ("nuclear",),
    "w/o L_sal and L_nuclear": ("sal", "nuclear"),
    "w/o L_rcl and L_pcl": ("rcl", "pcl"),
    "w/o L_snl": ("snl",),
    "w/o replay, L_rcl and L_pcl": ("replay", "rcl", "pcl"),
}
"""The rows of the paper's table, by what is left out, and the options that are switched off for it."""

REPLAYED = (0, 1, 5, 10, 20, 50, 100, 200)
"""Replayed features a class, as far as a sweep goes unless it is told."""

OURS = "Ours"


@dataclass(frozen=True)
class Variant:
    """One row: a run, or one for each seed."""

    label: str
    request: RunRequest
    paper: Figures | None = None
    x: float | None = None

    @property
    def alone(self) -> bool:
        """Whether it must be run without a stream."""
        return self.request.settings.learner in BOUNDS


@dataclass(frozen=True)
class Study:
    """`each_seed`: the seeds are rows of their own, before the row of their mean."""

    name: str
    title: str
    question: str
    setting: str
    variants: tuple[Variant, ...]
    x_label: str | None = None
    each_seed: bool = False


def ablation(base: RunRequest) -> Study:
    """The eight rows of the paper's ablation table."""
    _require_options(base, {part for off in ABLATION.values() for part in off})
    printed = (
        {row.system: row.figures for row in paper_ablation(base.data.name)} if base.plan.setting == "online" else {}
    )
    return Study(
        "ablation",
        f"What each part of {base.settings.learner} brings",
        "How much worse is the system without its replay, or without one of its losses?",
        base.plan.setting,
        tuple(
            Variant(
                label,
                _with(base, label, {part: 0 if part == "replay" else 0.0 for part in off}),
                printed.get(f"{OURS} {label}" if off else OURS),
            )
            for label, off in ABLATION.items()
        ),
    )


def replay(base: RunRequest, counts: Sequence[int] = REPLAYED) -> Study:
    """The appendix's sweep: how many features of each learned class are replayed in a window."""
    _require_options(base, {"replay", "replay_even"})
    return Study(
        "replay",
        f"How much {base.settings.learner} must replay",
        "How does accuracy change with the number of features replayed of each class?",
        base.plan.setting,
        tuple(
            Variant(
                f"{count} a class", _with(base, f"{count} replayed", {"replay": count, "replay_even": False}), x=count
            )
            for count in counts
        ),
        x_label="replayed features a class",
    )


def seeds(base: RunRequest) -> Study:
    """One learner, many seeds."""
    return Study(
        "seeds",
        f"How much luck there is in {base.settings.learner}",
        "How far do runs differ that differ in nothing but their seed?",
        base.plan.setting,
        (Variant("all seeds", base, _ours(base)),),
        each_seed=True,
    )


def settings(base: RunRequest) -> Study:
    """One learner in all three settings, whatever the setting asked for."""

    def under(setting: str) -> RunRequest:
        sizes = {name: size for name, size in base.sizes.items() if setting != "static" or name != "unseen"}
        return replace(base, plan=plan_for(base.data, setting, **sizes), sizes=sizes)

    requests = {setting: under(setting) for setting in SETTINGS}
    return Study(
        "settings",
        f"{base.settings.learner} in three settings",
        "What does it cost that classes come without warning, and that unseen ones may become seen?",
        ", ".join(SETTINGS),
        tuple(Variant(setting, request, _ours(request)) for setting, request in requests.items()),
    )


def learners(base: RunRequest) -> Study:
    """Every learner there is on the same stream, each with its defaults."""

    def variant(name: str) -> Variant:
        label = f"{name} (a bound, no stream)" if name in BOUNDS else name
        request = replace(base, settings=base.settings.model_copy(update={"learner": name, "options": {}}))
        return Variant(label, request, _ours(base) if name == "paper" else None)

    return Study(
        "learners",
        "Every learner on the same stream",
        "Which learner does best on these tasks? A bound keeps every example and is run without a stream.",
        base.plan.setting,
        tuple(variant(name) for name in LEARNERS),
    )


STUDIES: dict[str, Callable[[RunRequest], Study]] = {
    "ablation": ablation,
    "replay": replay,
    "seeds": seeds,
    "settings": settings,
    "learners": learners,
}


def _with(base: RunRequest, note: str, options: dict[str, Any]) -> RunRequest:
    merged = {**base.settings.options, **options}
    return replace(base, settings=base.settings.model_copy(update={"options": merged}), note=note)


def _ours(request: RunRequest) -> Figures | None:
    """What the paper reports of its own method."""
    rows = {row.system: row.figures for row in paper_rows(request.data.name, request.plan.setting)}
    return rows.get(OURS)


def _require_options(base: RunRequest, names: set[str]) -> None:
    """Raises `UsageError` for a learner without parts to switch off."""
    learner = create(base.settings.learner, base.data.space(), base.settings.options)
    missing = sorted(name for name in names if not hasattr(getattr(learner, "options", None), name))
    if missing:
        raise UsageError(
            f"learner {base.settings.learner!r} has no option {missing[0]!r}: this study is for adversarial, paper and "
            "authors-code"
        )
