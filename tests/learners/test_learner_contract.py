"""What every learner promises, whatever it does inside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from worlds import SPACE, World, quick_options, stream

from stream_cgzsl.errors import Cancelled, UsageError
from stream_cgzsl.learners import BOUNDS, LEARNERS, create, keeps
from stream_cgzsl.learners.interface import SILENT, Learner, Monitor, Progress, Space
from stream_cgzsl.learners.snapshots import from_bytes, to_bytes
from stream_cgzsl.runtime.settings import DEFAULT_LEARNER
from stream_cgzsl.serving.generation import Generation, following
from stream_cgzsl.windows.window import Window

QUICK = quick_options()

every_learner = pytest.mark.parametrize("name", LEARNERS)


class StopAfter(Monitor):
    """Cancels when it is asked for the n-th time."""

    def __init__(self, asked: int) -> None:
        self.left = asked

    def cancelled(self) -> bool:
        self.left -= 1
        return self.left < 0


class Watch(Monitor):
    def __init__(self) -> None:
        self.steps: list[Progress] = []

    def progress(self, progress: Progress) -> None:
        self.steps.append(progress)


def made(name: str, space: Space = SPACE) -> Learner:
    return create(name, space, QUICK.get(name))


def state(learner: Learner) -> bytes:
    return to_bytes(learner.snapshot())


def digests(name: str, windows: list[Window], restored_before: int | None = None) -> list[str]:
    learner = made(name)
    found: list[str] = []
    generation: Generation | None = None
    for index, window in enumerate(windows):
        if index == restored_before:
            stored = state(learner)
            learner = made(name)
            learner.restore(from_bytes(stored))
        generation = following(generation, learner.fit(window))
        found.append(generation.digest)
    return found


@every_learner
def test_same_windows_give_same_digests(name: str) -> None:
    assert digests(name, stream(World())) == digests(name, stream(World()))


@every_learner
@pytest.mark.parametrize("restored_before", [1, 2])
def test_a_snapshot_between_two_windows_changes_nothing(name: str, restored_before: int) -> None:
    windows = stream(World())
    assert digests(name, windows, restored_before) == digests(name, windows)


@every_learner
def test_restoring_gives_the_same_snapshot(name: str) -> None:
    learner = made(name)
    learner.fit(stream(World())[0])
    twin = made(name)
    twin.restore(from_bytes(state(learner)))
    assert state(twin) == state(learner)


@every_learner
def test_generations_know_all_living_classes(name: str) -> None:
    learner = made(name)
    world = World()
    generation: Generation | None = None
    for window in stream(world):
        generation = following(generation, learner.fit(window))
    assert generation is not None
    living = [c for c in world.ids(0, 16) if c != "c0001"]
    seen = {*world.ids(0, 15)} - {"c0001", "c0012"}
    assert list(generation.class_ids) == living
    assert {c for c, flag in zip(generation.class_ids, generation.seen, strict=True) if flag} == seen


@every_learner
def test_generations_say_how_many_examples_each_class_has_had(name: str) -> None:
    learner = made(name)
    world = World()
    generation: Generation | None = None
    for window in stream(world):
        generation = following(generation, learner.fit(window))
    assert generation is not None
    expected = dict.fromkeys(world.ids(0, 16), 12) | {"c0000": 24, "c0005": 24, "c0012": 0, "c0015": 0}
    del expected["c0001"]
    twin = made(name)
    twin.restore(from_bytes(state(learner)))
    for found in (generation, following(generation, twin.describe(Window(4)))):
        assert found.examples is not None
        assert dict(zip(found.class_ids, found.examples.tolist(), strict=True)) == expected


@every_learner
def test_described_classes_are_projected_without_training(name: str) -> None:
    world = World()
    learner = made(name)
    before = following(None, learner.fit(world.window(1, world.ids(0, 8), world.ids(0, 6))))
    after = following(before, learner.describe(world.window(2, world.ids(8, 10))))
    new = after.class_ids.index("c0008")
    assert after.class_ids == (*before.class_ids, "c0008", "c0009")
    assert not after.seen[new] and after.servable
    assert np.linalg.norm(after.vectors[new]) > 0


@every_learner
def test_describing_with_features_is_refused(name: str) -> None:
    learner = made(name)
    with pytest.raises(UsageError, match="must be fitted"):
        learner.describe(stream(World())[0])


@every_learner
@pytest.mark.parametrize("asked", [0, 1, 5])
def test_a_cancelled_window_leaves_no_trace(name: str, asked: int) -> None:
    first, second, _ = stream(World())
    learner = made(name)
    learner.fit(first)
    before = state(learner)
    with pytest.raises(Cancelled):
        learner.fit(second, StopAfter(asked))
    assert state(learner) == before


@every_learner
def test_after_a_cancelled_window_it_can_be_trained_again(name: str) -> None:
    first, second, _ = stream(World())
    learner = made(name)
    learner.fit(first)
    with pytest.raises(Cancelled):
        learner.fit(second, StopAfter(4))
    assert following(None, learner.fit(second)).digest == digests(name, [first, second])[1]


@every_learner
def test_a_window_with_numbers_that_are_not_finite_leaves_no_trace(name: str) -> None:
    first, second, _ = stream(World())
    learner = made(name)
    learner.fit(first)
    before = state(learner)
    second.features["c0007"].rows[3, 2] = np.nan
    with pytest.raises(Exception, match="c0007"):
        learner.fit(second)
    assert state(learner) == before


@every_learner
def test_watching_changes_nothing(name: str) -> None:
    window = stream(World())[0]
    watch = Watch()
    watched, alone = (following(None, made(name).fit(window, monitor)) for monitor in (watch, SILENT))
    assert watched.digest == alone.digest
    assert all(progress.step <= progress.steps for progress in watch.steps)


@pytest.mark.parametrize("name", [name for name in LEARNERS if keeps(name) != "everything"])
@pytest.mark.slow
def test_memory_does_not_grow_with_rows(name: str) -> None:
    def stored(rows: int) -> int:
        world = World()
        learner = made(name)
        learner.fit(world.window(1, world.ids(0, 8), world.ids(0, 6), rows))
        return sum(array.nbytes for array in learner.snapshot().arrays.values())

    assert stored(200) == stored(20)


WITHOUT_REPLAY = ("ridge", "joint", "ewc", "a-gem", "nm-zsl")
replaying = pytest.mark.parametrize("name", [name for name in LEARNERS if name not in WITHOUT_REPLAY])


@replaying
@pytest.mark.slow
def test_generated_features_are_published_ones_and_always_the_same(name: str) -> None:
    windows = stream(World())
    learner = made(name)
    for window in windows:
        learner.fit(window)
    before = state(learner)
    chosen = ["c0006", "c0000"]
    features = learner.generate(chosen, 5)
    again = made(name)
    again.restore(from_bytes(before))
    assert features is not None and features.shape == (2, 5, SPACE.features)
    np.testing.assert_allclose(np.linalg.norm(features, axis=2), 1, atol=1e-5)
    assert len(np.unique(features.reshape(10, -1), axis=0)) == 10
    np.testing.assert_array_equal(features, again.generate(chosen, 5))
    assert state(learner) == before


@replaying
def test_classes_without_examples_cannot_be_generated(name: str) -> None:
    learner = made(name)
    learner.fit(stream(World())[0])
    with pytest.raises(UsageError, match="class 'c0007' has no examples yet"):
        learner.generate(["c0000", "c0007"], 5)


@pytest.mark.parametrize("name", WITHOUT_REPLAY)
def test_learners_without_replay_generate_nothing(name: str) -> None:
    learner = made(name)
    learner.fit(stream(World())[0])
    assert learner.generate(["c0000"], 5) is None


@every_learner
def test_snapshots_of_others_are_refused(name: str) -> None:
    learner = made(name, replace(SPACE, seed=99))
    stranger = made(name)
    stranger.fit(stream(World())[0])
    with pytest.raises(ValueError, match="the snapshot is of learner"):
        learner.restore(stranger.snapshot())


@every_learner
def test_unknown_options_are_usage_errors(name: str) -> None:
    with pytest.raises(UsageError, match="has no option 'colour'"):
        create(name, SPACE, {"colour": "red"})


def test_unknown_learners_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="there is no learner 'oracle'"):
        create("oracle", SPACE)


def test_what_a_learner_keeps_is_known_by_its_name() -> None:
    assert keeps(DEFAULT_LEARNER) == "nothing"
    assert tuple(name for name in LEARNERS if keeps(name) == "everything") == BOUNDS
    with pytest.raises(UsageError, match="there is no learner 'oracle'"):
        keeps("oracle")


def test_the_default_comes_first() -> None:
    assert create(DEFAULT_LEARNER, SPACE).name == DEFAULT_LEARNER == "evidence"
