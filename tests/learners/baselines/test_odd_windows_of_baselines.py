"""Windows that a stream may well bring: the systems for comparison need not be good at them, but must survive them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace

import numpy as np
import pytest
from worlds import SPACE, World, quick_options

from stream_cgzsl.errors import TrainingFailed
from stream_cgzsl.learners import BASELINES, create, keeps
from stream_cgzsl.learners.interface import Learner, Space
from stream_cgzsl.learners.snapshots import to_bytes
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.window import Description, Examples, Window

each = pytest.mark.parametrize("name", BASELINES)
SIGNED = replace(SPACE, signed=True)


def made(name: str, space: Space = SPACE) -> Learner:
    return create(name, space, quick_options()[name])


def fitted(name: str, *windows: Window, space: Space = SPACE) -> Generation:
    learner = made(name, space)
    for window in windows:
        generation = learner.fit(window)
    assert np.isfinite(generation.vectors).all() and np.isfinite(generation.biases).all()
    for value in (0, 1, 1e30, -1e30):
        assert np.isfinite(generation.scores(np.full((1, space.features), value))).all()
    return generation


def changed(window: Window, change: Callable[[Examples], Examples]) -> Window:
    return replace(window, features={c: change(e) for c, e in window.features.items()})


@each
def test_nothing_at_all(name: str) -> None:
    assert not fitted(name, Window(1)).servable


@each
def test_no_seen_class_yet(name: str) -> None:
    world = World()
    generation = made(name).describe(world.window(1, world.ids(0, 5)))
    assert (generation.servable, generation.class_ids) == (False, tuple(world.ids(0, 5)))


@each
@pytest.mark.parametrize("learned", [1, 2])
@pytest.mark.parametrize("rows", [1, 12])
def test_very_few_classes(name: str, learned: int, rows: int) -> None:
    world = World()
    first = world.window(1, world.ids(0, 4), world.ids(0, learned), rows)
    assert fitted(name, first).servable
    fitted(name, first, world.window(2, world.ids(4, 5), world.ids(4, 5), rows))
    fitted(name, world.window(1, world.ids(0, 1), world.ids(0, 1), rows))


@each
def test_identical_samples(name: str) -> None:
    world = World()
    window = world.window(1, world.ids(0, 8), world.ids(0, 6))
    fitted(name, changed(window, lambda e: Examples(e.count, np.repeat(e.rows[:1], len(e.rows), axis=0))))


@each
@pytest.mark.parametrize("value", [0, 1, 1e30])
def test_constant_features(name: str, value: float) -> None:
    world = World()
    window = world.window(1, world.ids(0, 8), world.ids(0, 6))
    learner = made(name)
    with suppress(TrainingFailed) if value == 1e30 else nullcontext():
        learner.fit(changed(window, lambda e: Examples(e.count, np.full_like(e.rows, value))))
    generation = learner.fit(window)
    assert np.isfinite(generation.vectors).all() and np.isfinite(generation.scores(np.ones((1, 16)))).all()


@each
@pytest.mark.parametrize("value", [0, 1, 1e30])
def test_equal_attributes(name: str, value: float) -> None:
    world = World()
    window = world.window(1, world.ids(0, 8), world.ids(0, 6))
    vector = np.full(6, value, np.float32)
    fitted(name, replace(window, described=tuple(Description(d.class_id, vector) for d in window.described)))


@each
def test_features_that_can_be_negative(name: str) -> None:
    world = World(SIGNED)
    fitted(name, world.window(1, world.ids(0, 8), world.ids(0, 6)), space=SIGNED)


@each
def test_a_window_that_brings_only_descriptions(name: str) -> None:
    world = World()
    first = world.window(1, world.ids(0, 6), world.ids(0, 6))
    generation = fitted(name, first, world.window(2, world.ids(6, 8)))
    assert generation.seen.tolist() == [True] * 6 + [False] * 2


@each
def test_attributes_that_are_not_finite_leave_no_trace(name: str) -> None:
    world = World()
    learner = made(name)
    learner.fit(world.window(1, world.ids(0, 8), world.ids(0, 6)))
    before = to_bytes(learner.snapshot())
    world.vectors["c0009"] = np.full(6, np.nan)
    for learned in (world.ids(8, 10), []):
        with pytest.raises(TrainingFailed, match="window 2"):
            learner.fit(world.window(2, world.ids(8, 11), learned))
    assert to_bytes(learner.snapshot()) == before


@each
def test_all_seen_classes_retired(name: str) -> None:
    world = World()
    learner = made(name)
    learner.fit(world.window(1, world.ids(0, 8), world.ids(0, 6)))
    generation = learner.describe(Window(2, retired=tuple(world.ids(0, 6))))
    assert (generation.servable, generation.class_ids) == (False, ("c0006", "c0007"))
    assert learner.fit(world.window(3, [], world.ids(6, 8))).servable


@each
def test_a_class_retired_and_described_again_is_unseen(name: str) -> None:
    world = World()
    first = world.window(1, world.ids(0, 8), world.ids(0, 6))
    again = replace(world.window(2, ["c0000"]), retired=("c0000",))
    assert fitted(name, first, again).seen.tolist() == [False] + [True] * 5 + [False] * 2


@pytest.mark.parametrize("name", [name for name in BASELINES if keeps(name) == "exemplars"])
def test_retirement_drops_exemplars(name: str) -> None:
    world = World()
    learner = made(name)
    learner.fit(world.window(1, world.ids(0, 8), world.ids(0, 6)))
    learner.describe(Window(2, retired=("c0003",)))
    kept = [array for array in learner.snapshot().arrays if ".exemplars." in array]
    assert len(kept) == 5 and not any("c0003" in array for array in learner.snapshot().arrays)


@each
def test_a_description_does_not_depend_on_the_number_of_its_window(name: str) -> None:
    """Going back to a generation publishes it again under another number: its answers must stay."""
    world = World()
    learner = made(name)
    learner.fit(world.window(1, world.ids(0, 8), world.ids(0, 6)))
    one = learner.describe(world.window(2, world.ids(8, 10)))
    two = learner.describe(Window(7))
    assert replace(two, number=2).digest == one.digest
