"""No learner keeps an example, in whatever form, unless it says so.

What a learner keeps is looked at as one list of numbers. Each example of a class is changed a little, one at a time.
A number that is a statistic depends on all of them. A number that belongs to one stored example depends on that example
alone, whether it is stored as it was, flattened, inside a larger array, or transformed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from worlds import SPACE, World, quick_options

from stream_cgzsl.learners import BOUNDS, LEARNERS, create, keeps
from stream_cgzsl.learners.interface import Snapshot
from stream_cgzsl.windows.window import Window

pytestmark = pytest.mark.slow

Array = npt.NDArray[Any]
Memory = Callable[[Window], Snapshot]
"""What is kept after this window."""

ROWS = 12
OWNER = 8.0
"""A number belongs to one example if that one changes it so many times as much as any other does."""

QUICK = {
    **quick_options(),
    "paper": {"hidden": 16, "epochs": 4, "batch": 24},  # a smaller last batch would move the weights more than others
    "authors-code": {"hidden": 16, "epochs": 4, "batch": 24},
}
WORLD = World()
CLASSES, CHOSEN = WORLD.ids(0, 6), WORLD.ids(2, 3)[0]
FEATURES = {c: 0.2 + np.abs(WORLD.rows(c, ROWS)) for c in CLASSES}  # positive: a zero could not be changed a little


def window(changed: int | None = None) -> Window:
    """A window of six classes with `ROWS` examples each; one example of `CHOSEN` may be changed."""
    features = {c: rows.copy() for c, rows in FEATURES.items()}
    if changed is not None:
        rng = np.random.default_rng(changed)
        features[CHOSEN][changed] *= 1 + 1e-4 * rng.choice([-1, 1], SPACE.features) * rng.uniform(0.5, 1)
    return Window.from_arrays(1, {c: WORLD.vectors[c] for c in WORLD.ids(0, 8)}, features)


def numbers(snapshot: Snapshot) -> Array:
    """Every number of a snapshot, of its arrays and of its JSON."""
    arrays = [snapshot.arrays[name] for name in sorted(snapshot.arrays)]
    assert {array.dtype.str for array in arrays} <= {"<f4", "<f8", "<i8"}, "numbers too coarse to show a small change"
    return np.concatenate([*(np.ravel(array).astype(np.float64) for array in arrays), list(_numbers(snapshot.meta))])


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _numbers(value[key])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int | float):
        yield float(value)


def kept_examples(memory: Memory) -> list[int]:
    """The examples of `CHOSEN` of which at least half as many numbers are kept as they have."""
    before = numbers(memory(window()))
    changes = np.abs(np.stack([numbers(memory(window(row))) for row in range(ROWS)]) - before)  # [rows, numbers]
    second, most = np.sort(changes, axis=0)[-2:]
    visible = most > 1e-6 * np.maximum(np.abs(before), 1e-3)  # more than rounding
    owners = changes.argmax(axis=0)[visible & (most > OWNER * second)]
    return np.flatnonzero(np.bincount(owners, minlength=ROWS) >= SPACE.features / 2).tolist()


def memory_of(name: str) -> Memory:
    def memory(window: Window) -> Snapshot:
        learner = create(name, SPACE, QUICK.get(name))
        learner.fit(window)
        return learner.snapshot()

    return memory


@pytest.mark.parametrize("name", [name for name in LEARNERS if keeps(name) == "nothing"])
def test_a_learner_keeps_no_example(name: str) -> None:
    assert kept_examples(memory_of(name)) == []


@pytest.mark.parametrize("name", BOUNDS)
def test_an_upper_bound_keeps_every_example(name: str) -> None:
    assert kept_examples(memory_of(name)) == list(range(ROWS))


@pytest.mark.parametrize("name", [name for name in LEARNERS if keeps(name) == "exemplars"])
def test_a_learner_with_exemplars_keeps_no_more_than_it_says(name: str) -> None:
    kept = kept_examples(memory_of(name))
    assert 0 < len(kept) <= create(name, SPACE).options.memory  # type: ignore[attr-defined]


# ---- the search itself


ROTATION = np.linalg.qr(np.random.default_rng(0).normal(size=(SPACE.features, SPACE.features)))[0]
KEEPERS: dict[str, Callable[[Array, Array], Snapshot]] = {
    "as it was": lambda row, _: Snapshot({"rows": row[None]}, {}),
    "flattened with statistics": lambda row, rows: Snapshot({"all": np.hstack([rows.mean(0), row, rows.std(0)])}, {}),
    "in columns": lambda row, rows: Snapshot({"all": np.stack([rows.mean(0), row, rows.std(0)], axis=1)}, {}),
    "its square root at length 1": lambda row, _: Snapshot({"x": np.sqrt(row) / np.sqrt(row.sum())}, {}),
    "rotated": lambda row, _: Snapshot({"x": ROTATION @ row}, {}),
    "standardised": lambda row, rows: Snapshot({"x": (row - rows.mean(0)) / rows.std(0)}, {}),
    "as text": lambda row, _: Snapshot({"none": np.zeros(0)}, {"classes": {"a": [row.tolist()]}}),
    "as integers": lambda row, _: Snapshot({"x": (1e6 * row).astype(np.int64)}, {}),
}


@pytest.mark.parametrize("form", KEEPERS)
def test_a_kept_example_is_found(form: str) -> None:
    def memory(window: Window) -> Snapshot:
        rows = np.concatenate([examples.rows for examples in window.features.values()]).astype(np.float64)
        return KEEPERS[form](window.features[CHOSEN].rows[7].astype(np.float64), rows)

    assert kept_examples(memory) == [7]


def test_statistics_are_not_taken_for_examples() -> None:
    def memory(window: Window) -> Snapshot:
        rows = window.features[CHOSEN].rows.astype(np.float64)
        return Snapshot({"mean": rows.mean(0), "scatter": rows.T @ rows, "spread": rows.std(0)}, {"count": len(rows)})

    assert kept_examples(memory) == []
