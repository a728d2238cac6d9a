"""From a mapping of names and values, as a configuration gives it, to a learner's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from stream_cgzsl.errors import UsageError

Options = TypeVar("Options")


def parse_options(kind: type[Options], given: Mapping[str, Any] | None, learner: str) -> Options:
    """The options dataclass `kind` with the given values; unknown names and values of another type are usage errors."""
    assert is_dataclass(kind)
    known = {option.name: option for option in fields(kind)}
    values: dict[str, Any] = {}
    for name, value in (given or {}).items():
        if name not in known:
            offered = ", ".join(sorted(known)) or "none"
            raise UsageError(f"learner {learner!r} has no option {name!r}; it has: {offered}")
        default = known[name].default
        if isinstance(default, float) and type(value) is int:
            value = float(value)
        if type(value) is not type(default):
            expected = type(default).__name__
            raise UsageError(f"option {name!r} of learner {learner!r} wants a {expected}, not {value!r}")
        values[name] = value
    options: Options = kind(**values)
    return options
