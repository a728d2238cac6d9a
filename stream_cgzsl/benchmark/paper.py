"""What the paper reports: data sets, splits, and the figures of its tables (percent; forgetting as a fraction)."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from stream_cgzsl.report.document import Figures, PaperRow


@cache
def _document() -> dict[str, Any]:
    return dict(json.loads((files("stream_cgzsl.benchmark") / "paper.json").read_text(encoding="utf-8")))


def facts() -> dict[str, dict[str, int]]:
    """Per data set: classes, attributes, images, and how many classes are seen and unseen."""
    return dict(_document()["datasets"])


def splits(setting: str) -> dict[str, dict[str, int]]:
    """Per data set: tasks, new seen and new unseen classes per task, and how many unseen ones become seen later."""
    return dict(_document()["splits"][setting])


def paper_rows(dataset: str, setting: str) -> tuple[PaperRow, ...]:
    """The rows of the paper's table for a data set and a setting, its own method ("Ours") last; () for other data."""
    return tuple(
        PaperRow(system=system, figures=Figures(**by_data[dataset]))
        for system, by_data in _document()["results"].get(setting, {}).items()
        if any(value is not None for value in by_data.get(dataset, {}).values())
    )


def paper_ablation(dataset: str) -> tuple[PaperRow, ...]:
    """The rows of the paper's ablation table (online setting): the full method, then without some of its parts."""
    return tuple(
        PaperRow(system=system, figures=Figures(**by_data[dataset]))
        for system, by_data in _document()["ablation_online"].items()
        if dataset in by_data
    )


def paper_forgetting(dataset: str, setting: str) -> dict[str, float]:
    """Forgetting by system, as a fraction; empty where the paper reports none."""
    return {
        system: by_setting[setting][dataset]
        for system, by_setting in _document()["forgetting"].items()
        if dataset in by_setting.get(setting, {})
    }
