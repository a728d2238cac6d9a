"""How a window becomes knowledge. `create` makes any learner by name; its module is imported only then."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners.interface import Factory, Learner, Space

_FACTORIES = {
    "episodic": "episodic:Episodic",
    "closed-form": "closed_form:ClosedForm",
    "ridge": "ridge:Ridge",
    "paper": "paper:Paper",
    "authors-code": "authors_code:AuthorsCode",
    "adversarial": "adversarial:Adversarial",
    "joint": "joint:Joint",
}

LEARNERS = tuple(_FACTORIES)
"""Every learner's name, the default first."""

DEFAULT = LEARNERS[0]

BOUNDS = ("joint",)
"""Learners that keep every example: something to compare with, never something to run on a stream."""


def create(name: str, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> Learner:
    """The learner `name`, knowing nothing yet. Unknown names, options and devices raise `UsageError`."""
    if name not in _FACTORIES:
        raise UsageError(f"there is no learner {name!r}; there are: {', '.join(LEARNERS)}")
    module, factory = _FACTORIES[name].split(":")
    make: Factory = getattr(import_module(f"{__name__}.{module}"), factory)
    return make(space, options or {}, device)
