from __future__ import annotations

from dataclasses import dataclass

import pytest

from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Space
from stream_cgzsl.learners.options import parse_options


@dataclass(frozen=True)
class Some:
    steps: int = 5
    rate: float = 0.5
    on: bool = True


def test_given_values_replace_defaults() -> None:
    assert parse_options(Some, {"steps": 7, "rate": 2}, "x") == Some(7, 2.0, True)
    assert parse_options(Some, None, "x") == Some()


def test_unknown_names_are_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"learner 'x' has no option 'step'; it has: on, rate, steps"):
        parse_options(Some, {"step": 7}, "x")


@pytest.mark.parametrize("given", [{"steps": 1.5}, {"steps": True}, {"on": 1}, {"rate": "fast"}])
def test_values_of_another_type_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="wants a"):
        parse_options(Some, given, "x")


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no device 'abacus'"):
        create("episodic", Space(3, 4, True), device="abacus")
