"""Prequential accuracy: by hand, and within its bound."""

from __future__ import annotations

import numpy as np
import pytest
from generations import degrees, generation

from stream_cgzsl.evaluation import prequential as module
from stream_cgzsl.evaluation.prequential import prequential
from stream_cgzsl.schemas import Prequential
from stream_cgzsl.windows.window import Window

COMPASS = generation(1, dict(zip("abcd", degrees(0, 90, 180, 270), strict=True)), seen="ac")


def window(retired: tuple[str, ...] = (), **angles: tuple[float, ...]) -> Window:
    """Features of each class at these angles."""
    return Window.from_arrays(2, {}, {c: np.array(degrees(*given)) for c, given in angles.items()}, retired)


def test_seen_and_unseen_classes_are_separate() -> None:
    asked = window(a=(0, 10, 100, 200), b=(90,), c=(180,), d=(0, 270))
    assert prequential(COMPASS, asked) == Prequential(rows=8, seen=0.75, unseen=0.75)


def test_classes_it_does_not_know_are_in_neither() -> None:
    assert prequential(COMPASS, window(a=(0,), new=(0, 0, 0))) == Prequential(rows=1, seen=1.0, unseen=None)
    assert prequential(COMPASS, window(a=(0,), b=(0,), retired=("b",))) == Prequential(rows=1, seen=1.0)


@pytest.mark.parametrize(
    ("before", "asked"),
    [
        (None, window(a=(0,))),
        (generation(1, {"a": [1, 0]}, servable=False), window(a=(0,))),
        (COMPASS, window()),
        (COMPASS, window(new=(0,))),
    ],
)
def test_none_if_nothing_can_be_classified(before: object, asked: Window) -> None:
    assert prequential(before, asked) is None  # type: ignore[arg-type]


def test_the_first_rows_of_each_class_in_equal_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS", 7)
    asked = window(a=(0, 180, 180, 0), b=(90,), c=(180, 180, 180, 0))  # three, one and three are looked at
    found = prequential(COMPASS, asked)
    assert found is not None
    assert (found.rows, found.seen, found.unseen) == (7, pytest.approx(2 / 3), 1.0)


def test_never_more_rows_than_the_bound_however_many_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS", 2)
    assert prequential(COMPASS, window(a=(0, 0), b=(90,), c=(0,))) == Prequential(rows=2, seen=1.0, unseen=1.0)
