"""The studies: which rows each has, and what a row changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stream_cgzsl.benchmark.paper import paper_ablation, paper_rows
from stream_cgzsl.benchmark.protocols import SETTINGS, plan_for
from stream_cgzsl.benchmark.runs.request import RunRequest
from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners import BASELINES, BOUNDS, LEARNERS, create
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
"""The rows of the paper's table, and the options each switches off."""

REPLAYED = (0, 1, 5, 10, 20, 50, 100, 200)
"""Replayed features per class in a sweep, unless --counts is given."""

OURS = "Ours"


@dataclass(frozen=True)
class Variant:
    """One row: one run per seed."""

    label: str
    request: RunRequest
    paper: Figures | None = None
    x: float | None = None

    @property
    def offline(self) -> bool:
        """Whether it must be run without a stream."""
        return self.request.settings.learner in BOUNDS


@dataclass(frozen=True)
class Study:
    """`each_seed`: every seed has its own row, before the row of their mean."""

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
        f"What each part of {base.settings.learner} contributes",
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
    """The sweep of the paper's appendix: how many features of each seen class are replayed in a window."""
    options = _require_options(base, {"replay"})
    unbounded = {"replay_even": False} if hasattr(options, "replay_even") else {}
    return Study(
        "replay",
        f"How much replay {base.settings.learner} needs",
        "How does accuracy change with the number of features replayed per class?",
        base.plan.setting,
        tuple(
            Variant(f"{count} per class", _with(base, f"{count} replayed", {"replay": count, **unbounded}), x=count)
            for count in counts
        ),
        x_label="replayed features per class",
    )


def seeds(base: RunRequest) -> Study:
    """One learner, many seeds."""
    return Study(
        "seeds",
        f"How much {base.settings.learner} varies with its seed",
        "How much do the figures vary between runs that differ only in their seed?",
        base.plan.setting,
        (Variant("all seeds", base, _ours(base)),),
        each_seed=True,
    )


def settings(base: RunRequest) -> Study:
    """One learner in the three settings of the paper, whatever --setting says."""

    def under(setting: str) -> RunRequest:
        known = ("tasks", "seen") if setting == "static" else ("tasks", "seen", "unseen")
        sizes = {name: size for name, size in base.sizes.items() if name in known}
        return replace(base, plan=plan_for(base.data, setting, **sizes), sizes=sizes)

    requests = {setting: under(setting) for setting in SETTINGS}
    return Study(
        "settings",
        f"{base.settings.learner} in three settings",
        "What does it cost when classes arrive over time, and when unseen classes become seen later?",
        ", ".join(SETTINGS),
        tuple(Variant(setting, request, _ours(request)) for setting, request in requests.items()),
    )


def learners(base: RunRequest) -> Study:
    """Every learner of ours on the same stream, each with its defaults."""

    def variant(name: str) -> Variant:
        label = f"{name} (upper bound, no stream)" if name in BOUNDS else name
        request = replace(base, settings=base.settings.model_copy(update={"learner": name, "options": {}}))
        return Variant(label, request, _ours(base) if name == "paper" else None)

    return Study(
        "learners",
        "Every learner on the same stream",
        "Which learner does best on these tasks? An upper bound keeps every example and is run without a stream.",
        base.plan.setting,
        tuple(variant(name) for name in LEARNERS if name not in BASELINES),
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
    """What the paper reports for its own method."""
    rows = {row.system: row.figures for row in paper_rows(request.data.name, request.plan.setting)}
    return rows.get(OURS)


def _require_options(base: RunRequest, names: set[str]) -> object:
    """The learner's options. Raises `UsageError` for a learner without these."""
    learner = create(base.settings.learner, base.data.space(), base.settings.options)
    options = getattr(learner, "options", None)
    missing = sorted(name for name in names if not hasattr(options, name))
    if missing:
        raise UsageError(
            f"learner {base.settings.learner!r} has no option {missing[0]!r}; this study is for paper, authors-code "
            "and adversarial: choose another --learner"
        )
    return options
