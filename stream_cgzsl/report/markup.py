"""HTML and SVG as trees. Text is always escaped: nothing here accepts markup in a string."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, Union
from xml.etree.ElementTree import Element, tostring

Node: TypeAlias = Union[Element, str, int, Iterable["Node"], None]  # noqa: UP007 - a name in quotes has no |
"""What an element may contain. None is nothing; an iterable is all its members, in order."""

Value: TypeAlias = str | int | float | bool | None


def el(tag: str, *children: Node, **attributes: Value) -> Element:
    """An element. `class_` becomes `class`, `aria_label` becomes `aria-label`; None and False leave it out."""
    element = Element(tag)
    for name, value in attributes.items():
        if value is not None and value is not False:
            element.set(name.removesuffix("_").replace("_", "-"), "" if value is True else spell(value))
    for child in children:
        put(element, child)
    return element


def put(parent: Element, child: Node) -> None:
    """Appends `child` to the content of `parent`."""
    if child is None:
        return
    if isinstance(child, Element):
        parent.append(child)
    elif isinstance(child, str | int):
        if len(parent):
            parent[-1].tail = (parent[-1].tail or "") + str(child)
        else:
            parent.text = (parent.text or "") + str(child)
    else:
        for member in child:
            put(parent, member)


def spell(value: str | int | float) -> str:
    """A number with at most two decimals: drawings need no more, and contain many."""
    if isinstance(value, float):
        text = f"{value:.2f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return str(value)


def percent(fraction: float) -> str:
    """A fraction of the width or height of a drawing, as a coordinate."""
    return f"{spell(100.0 * fraction)}%"


def whole_page(root: Element) -> str:
    """The complete page as text."""
    return "<!doctype html>\n" + tostring(root, encoding="unicode", method="html") + "\n"


def fragment(element: Element) -> str:
    return tostring(element, encoding="unicode", method="html")
