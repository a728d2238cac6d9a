"""Building blocks of several sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from stream_cgzsl.report.charts.bars import bar_centres
from stream_cgzsl.report.charts.plot import Axis
from stream_cgzsl.report.charts.scale import evenly_spaced, pick_labels
from stream_cgzsl.report.document import WindowLine
from stream_cgzsl.report.markup import Node, el


class Section(NamedTuple):
    """A part of the page with a heading and an anchor."""

    name: str
    title: str
    content: tuple[Node, ...]


def section(name: str, title: str, *content: Node) -> Section:
    return Section(name, title, content)


def windows_across(windows: Sequence[WindowLine], as_bars: bool = False) -> tuple[list[float], Axis]:
    """The positions of the windows, evenly spaced, and the axis with their numbers."""
    at = bar_centres(len(windows)) if as_bars else evenly_spaced(len(windows))
    return at, Axis(
        [(at[i], str(windows[i].number)) for i in pick_labels([window.number for window in windows])], "window"
    )


def facts(values: Mapping[str, Any], name: str) -> Element:
    """Settings or an environment as a list of names and values; nested ones are `outer.inner`."""
    rows = (el("div", el("dt", key), el("dd", text)) for key, text in _flat(values))
    return el("dl", rows, class_="facts", aria_label=name)


def _flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    found = []
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            found += _flat(value, f"{before}{key}.")
        else:
            found.append((f"{before}{key}", "–" if value is None or value == {} else str(value)))
    return found


def command(text: str, reproduces: str) -> Element:
    """A command to copy. The button is shown only if scripts run."""
    return el(
        "div",
        el("p", reproduces),
        el("pre", el("code", text), tabindex="0", role="region", aria_label="The command"),
        el("button", "Copy the command", type="button", class_="copy", hidden=True),
        class_="command",
    )
