"""Windows that a stream may well bring and an algorithm may well trip over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from worlds import SPACE, World

from stream_cgzsl.errors import TrainingFailed
from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Space
from stream_cgzsl.learners.snapshots import to_bytes
from stream_cgzsl.serving.generation import Generation, following
from stream_cgzsl.windows.window import Description, Examples, Window

OURS = ("evidence", "episodic", "closed-form", "ridge")
each = pytest.mark.parametrize("name", OURS)

SIGNED = replace(SPACE, signed=True)
SHARED = Space(attributes=16, features=16, signed=True, shared=True)


def rows_of(window: Window, change: Callable[[Examples], Examples]) -> Window:
    return replace(window, features={c: change(e) for c, e in window.features.items()})


def fitted(name: str, *windows: Window, space: Space = SPACE) -> Generation:
    learner = create(name, space)
    generation: Generation | None = None
    for window in windows:
        generation = following(generation, learner.fit(window))
    assert generation is not None
    for array in (generation.vectors, generation.biases, generation.centre):
        assert np.isfinite(array).all()
    assert np.isfinite(generation.scores(np.ones((1, space.features)))).all()
    return generation


def accuracy(world: World, generation: Generation, class_ids: list[str], rows: int = 40) -> float:
    """Mean over classes, among all classes."""
    ids = np.array(generation.class_ids)
    return float(
        np.mean([(ids[generation.classify(world.rows(c, rows)).indices[:, 0]] == c).mean() for c in class_ids])
    )


@each
def test_no_seen_class_yet(name: str) -> None:
    world = World()
    generation = following(None, create(name, SPACE).describe(world.window(1, world.ids(0, 5))))
    assert (generation.servable, generation.class_ids) == (False, tuple(world.ids(0, 5)))
    assert not generation.vectors.any() and not generation.seen.any()


@each
def test_no_seen_class_yet_in_a_shared_space(name: str) -> None:
    world = World(SHARED)
    generation = following(None, create(name, SHARED).describe(world.window(1, world.ids(0, 8))))
    assert generation.servable
    assert accuracy(world, generation, world.ids(0, 8)) > 0.9


@each
def test_nothing_at_all(name: str) -> None:
    generation = fitted(name, Window(1))
    assert (generation.servable, generation.class_ids) == (False, ())


@each
def test_one_seen_class_among_described_ones(name: str) -> None:
    world = World()
    generation = fitted(name, world.window(1, world.ids(0, 4), world.ids(0, 1)))
    assert generation.servable and accuracy(world, generation, world.ids(0, 1)) > 0.9


@each
def test_one_sample_a_class(name: str) -> None:
    world = World()
    generation = fitted(name, world.window(1, world.ids(0, 8), world.ids(0, 6), rows=1))
    assert accuracy(world, generation, world.ids(0, 6)) > 0.5


def counted(world: World, counts: Sequence[int], described: int) -> Window:
    """One window: the first classes with so many examples each, and the first `described` classes described."""
    rows = {c: world.rows(c, n) for c, n in zip(world.ids(0, len(counts)), counts, strict=True)}
    return Window.from_arrays(1, {c: world.vectors[c] for c in world.ids(0, described)}, rows)


@each
def test_one_example_for_each_of_many_classes(name: str) -> None:
    world = World(classes=40, noise=0.2)
    generation = fitted(name, counted(world, [1] * 36, described=40))
    assert accuracy(world, generation, world.ids(0, 36)) > 0.85
    assert accuracy(world, generation, world.ids(36, 40)) > 0.3  # chance is 0.025


@each
def test_one_class_with_many_examples_and_others_with_one(name: str) -> None:
    world = World(classes=40, noise=0.2)
    generation = fitted(name, counted(world, [300] + [1] * 35, described=40))
    assert accuracy(world, generation, world.ids(0, 1)) > 0.8
    assert accuracy(world, generation, world.ids(1, 36)) > 0.75
    assert accuracy(world, generation, world.ids(36, 40)) > 0.5


@each
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_very_few_classes(name: str, classes: int) -> None:
    world = World(classes=4, noise=0.2)
    alone = fitted(name, counted(world, [12] * classes, described=classes))
    assert alone.servable and accuracy(world, alone, world.ids(0, classes)) > (0.95 if classes > 1 else 0.999)
    fitted(name, counted(world, [12] * classes, described=4))  # finite; nothing can be expected


@each
def test_no_unseen_class(name: str) -> None:
    world = World()
    generation = fitted(name, world.window(1, world.ids(0, 6), world.ids(0, 6)))
    assert generation.seen.all() and accuracy(world, generation, world.ids(0, 6)) > 0.9


@each
def test_no_new_seen_class(name: str) -> None:
    world = World(noise=0.3)
    first = world.window(1, world.ids(0, 6), world.ids(0, 6), rows=4)
    again = fitted(name, first, world.window(2, learned=world.ids(0, 6), rows=40))
    assert accuracy(world, again, world.ids(0, 6)) > 0.9


@each
def test_a_window_that_brings_only_descriptions(name: str) -> None:
    world = World()
    generation = fitted(name, world.window(1, world.ids(0, 6), world.ids(0, 6)), world.window(2, world.ids(6, 8)))
    assert generation.seen.tolist() == [True] * 6 + [False] * 2


@each
@pytest.mark.parametrize("space", [SPACE, SIGNED])
def test_unseen_classes_are_recognised(name: str, space: Space) -> None:
    world = World(space, classes=40, noise=0.2)
    generation = fitted(name, world.window(1, world.ids(0, 40), world.ids(0, 36)), space=space)
    assert accuracy(world, generation, world.ids(0, 36)) > 0.7
    assert accuracy(world, generation, world.ids(36, 40)) > 0.5


@each
def test_identical_samples(name: str) -> None:
    world = World()
    window = world.window(1, world.ids(0, 6), world.ids(0, 6))
    same = rows_of(window, lambda e: Examples(e.count, np.repeat(e.rows[:1], len(e.rows), axis=0)))
    generation = fitted(name, same)
    answers = [generation.classify(e.rows[:1]).indices[0, 0] for e in same.features.values()]
    assert answers == list(range(6))


@each
def test_identical_examples_of_many_classes(name: str) -> None:
    world = World(classes=40, noise=0.2)
    window = counted(world, [12] * 36, described=40)
    same = rows_of(window, lambda e: Examples(e.count, np.repeat(e.rows[:1], len(e.rows), axis=0)))
    generation = fitted(name, same)
    assert accuracy(world, generation, world.ids(0, 36)) > 0.8
    assert accuracy(world, generation, world.ids(36, 40)) > 0.4


@each
@pytest.mark.parametrize("value", [0, 1])
def test_constant_features(name: str, value: int) -> None:
    world = World()
    window = world.window(1, world.ids(0, 8), world.ids(0, 6))
    fitted(name, rows_of(window, lambda e: Examples(e.count, np.full_like(e.rows, value))))


@each
def test_a_constant_feature_among_others(name: str) -> None:
    world = World()
    window = world.window(1, world.ids(0, 8), world.ids(0, 6))
    for examples in window.features.values():
        examples.rows[:, 3] = 0
    assert fitted(name, window).vectors.shape == (8, 16)


@each
def test_equal_attributes(name: str) -> None:
    world = World()
    window = world.window(1, world.ids(0, 8), world.ids(0, 6))
    equal = replace(window, described=tuple(Description(d.class_id, np.ones(6)) for d in window.described))
    assert accuracy(world, fitted(name, equal), world.ids(0, 6)) > 0.6


@each
def test_two_classes_with_the_same_attributes(name: str) -> None:
    """Seen classes are told apart by their examples, unseen ones not at all; an unseen one may replace a seen one."""
    world = World(classes=40, noise=0.2)
    for one, two in (("c0000", "c0001"), ("c0002", "c0036"), ("c0037", "c0038")):
        world.vectors[two] = world.vectors[one]
    generation = fitted(name, counted(world, [12] * 36, described=40))
    assert accuracy(world, generation, ["c0000", "c0001"]) > 0.8
    assert accuracy(world, generation, world.ids(3, 36)) > 0.85
    np.testing.assert_allclose(generation.vectors[37], generation.vectors[38], atol=1e-6)
    answers = generation.classify(world.rows("c0002", 40)).indices[:, 0]
    assert np.isin(answers, [2, 36]).mean() > 0.8


@each
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_attributes_of_any_scale_say_the_same(name: str, scale: float) -> None:
    world = World()
    window = world.window(1, world.ids(0, 12), world.ids(0, 9))
    scaled = tuple(replace(d, vector=(d.vector * scale).astype(np.float32)) for d in window.described)
    one, two = fitted(name, window), fitted(name, replace(window, described=scaled))
    np.testing.assert_allclose(two.vectors, one.vectors, atol=2e-3)


@each
def test_features_already_of_length_one(name: str) -> None:
    world = World(SIGNED)
    window = world.window(1, world.ids(0, 8), world.ids(0, 6))
    unit = rows_of(window, lambda e: Examples(e.count, e.rows / np.linalg.norm(e.rows, axis=1, keepdims=True)))
    one, two = fitted(name, window, space=SIGNED), fitted(name, unit, space=SIGNED)
    np.testing.assert_allclose(two.vectors, one.vectors, atol=1e-3)


@each
def test_half_precision_input(name: str) -> None:
    world = World()
    window = world.window(1, world.ids(0, 8), world.ids(0, 6))
    half = rows_of(window, lambda e: Examples(e.count, e.rows.astype(np.float16)))
    widened = rows_of(half, lambda e: Examples(e.count, e.rows.astype(np.float32)))
    assert fitted(name, half).digest == fitted(name, widened).digest


@each
def test_a_shared_space_declared_wrongly(name: str) -> None:
    """Class vectors that have nothing to do with features cost accuracy, but the learner still learns."""
    unrelated = Space(attributes=16, features=16, signed=True, shared=False)
    world = World(unrelated, classes=40, noise=0.2)
    window = world.window(1, world.ids(0, 40), world.ids(0, 36))
    generation = fitted(name, window, space=replace(unrelated, shared=True))
    assert accuracy(world, generation, world.ids(0, 36)) > 0.7
    assert accuracy(world, generation, world.ids(36, 40)) > 0.25  # chance is 0.025


@each
def test_the_decision_about_the_shared_space_is_recorded(name: str) -> None:
    space = replace(SHARED, shared=None)
    world = World(SHARED)
    found = fitted(name, world.window(1, world.ids(0, 10), world.ids(0, 8)), space=space).calibration
    assert (found["shared"], found["shared_why"]) == (True, "measured") and found["shared_alignment"] > 3


@each
@pytest.mark.slow
def test_two_thousand_classes(name: str) -> None:
    world = World(classes=2000, noise=0.1)
    generation = fitted(name, world.window(1, world.ids(0, 2000), world.ids(0, 500), rows=2))
    assert len(generation.class_ids) == 2000


@pytest.mark.slow
def test_more_classes_than_an_episode_holds() -> None:
    space = replace(SPACE, attributes=12, features=48)
    world = World(space, classes=620, noise=0.2)
    generation = fitted("evidence", counted(world, [2] * 600, described=620), space=space)
    assert accuracy(world, generation, world.ids(0, 600), rows=5) > 0.9
    assert accuracy(world, generation, world.ids(600, 620), rows=5) > 0.9


@each
def test_attributes_that_are_not_finite_leave_no_trace(name: str) -> None:
    world = World()
    learner = create(name, SPACE)
    learner.fit(world.window(1, world.ids(0, 8), world.ids(0, 6)))
    before = to_bytes(learner.snapshot())
    world.vectors["c0009"] = np.full(6, np.nan)
    with pytest.raises(TrainingFailed, match="window 2"):
        learner.fit(world.window(2, world.ids(8, 11), world.ids(8, 10)))
    assert to_bytes(learner.snapshot()) == before


@each
def test_all_seen_classes_retired(name: str) -> None:
    world = World()
    learner = create(name, SPACE)
    before = following(None, learner.fit(world.window(1, world.ids(0, 8), world.ids(0, 6))))
    generation = following(before, learner.describe(Window(2, retired=tuple(world.ids(0, 6)))))
    assert (generation.servable, generation.class_ids) == (False, ("c0006", "c0007"))


@each
@pytest.mark.parametrize("rows", [0, 2])
def test_a_class_retired_and_described_again(name: str, rows: int) -> None:
    """It starts fresh: unseen, or with its new examples alone."""
    world = World(classes=40, noise=0.2)
    again = world.window(2, ["c0000"], ["c0000"] if rows else [], rows)
    generation = fitted(name, counted(world, [12] * 36, described=40), replace(again, retired=("c0000",)))
    assert generation.seen[0] == bool(rows) and generation.seen[1:36].all()
    assert accuracy(world, generation, ["c0000"]) > 0.7
    assert accuracy(world, generation, world.ids(1, 36)) > 0.85
