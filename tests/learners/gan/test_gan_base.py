"""What the learners with networks do alike: odd windows, bounds, switches, failures. Small networks, few steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from worlds import SPACE, World, stream

from stream_cgzsl.errors import TrainingFailed, UsageError
from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Monitor, Progress, Space
from stream_cgzsl.learners.snapshots import to_bytes
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.window import Description, Examples, Window

pytestmark = pytest.mark.slow

each = pytest.mark.parametrize("name", ("paper", "authors-code", "adversarial"))

SMALL: Mapping[str, Mapping[str, Any]] = {
    "paper": {"hidden": 24, "epochs": 2},
    "authors-code": {"hidden": 24, "epochs": 2},
    "adversarial": {"hidden": 24, "max_iterations": 8},
}
SIGNED = replace(SPACE, signed=True)
SHARED = Space(attributes=16, features=16, signed=True, shared=True)


class Watch(Monitor):
    def __init__(self) -> None:
        self.told: list[Progress] = []

    def progress(self, progress: Progress) -> None:
        self.told.append(progress)


def fitted(name: str, *windows: Window, space: Space = SPACE, **options: Any) -> Generation:
    learner = create(name, space, {**SMALL[name], **options})
    for window in windows:
        generation = learner.fit(window)
    for array in (generation.vectors, generation.biases, generation.centre):
        assert np.isfinite(array).all()
    assert np.isfinite(generation.scores(np.ones((1, space.features)))).all()
    return generation


def rows_of(window: Window, change: Callable[[Examples], Examples]) -> Window:
    return replace(window, features={c: change(e) for c, e in window.features.items()})


def usual(world: World) -> Window:
    return world.window(1, world.ids(0, 8), world.ids(0, 6))


@each
def test_no_seen_class_yet(name: str) -> None:
    world = World()
    generation = fitted(name, world.window(1, world.ids(0, 5)))
    assert (generation.servable, generation.vectors.any()) == (False, False)


@each
def test_no_seen_class_yet_in_a_shared_space(name: str) -> None:
    world = World(SHARED)
    assert fitted(name, world.window(1, world.ids(0, 5)), space=SHARED).servable


@each
def test_first_only_descriptions_then_features(name: str) -> None:
    world = World()
    described = world.window(1, world.ids(0, 8))
    generation = fitted(name, described, world.window(2, learned=world.ids(0, 6)))
    assert generation.servable and generation.seen.sum() == 6


@each
def test_one_class(name: str) -> None:
    world = World()
    assert fitted(name, world.window(1, world.ids(0, 1), world.ids(0, 1))).servable


@each
@pytest.mark.parametrize("rows", [1, 2])
def test_few_samples_a_class(name: str, rows: int) -> None:
    world = World()
    later = world.window(2, world.ids(8, 10), world.ids(6, 9), rows)
    assert fitted(name, world.window(1, world.ids(0, 8), world.ids(0, 6), rows), later).seen.sum() == 9


@each
def test_one_seen_class_among_described_ones(name: str) -> None:
    world = World()
    assert fitted(name, world.window(1, world.ids(0, 4), world.ids(0, 1))).seen.sum() == 1


@each
def test_no_unseen_class(name: str) -> None:
    world = World()
    later = world.window(2, world.ids(6, 8), world.ids(6, 8))
    assert fitted(name, world.window(1, world.ids(0, 6), world.ids(0, 6)), later).seen.all()


@each
def test_a_class_that_returns(name: str) -> None:
    world = World()
    assert fitted(name, usual(world), world.window(2, learned=world.ids(0, 2))).seen.sum() == 6


@each
def test_a_window_of_descriptions_trains_nothing(name: str) -> None:
    world = World()
    learner = create(name, SPACE, SMALL[name])
    learner.fit(usual(world))
    before = {n: a for n, a in learner.snapshot().arrays.items() if n.startswith("memory")}
    learner.fit(world.window(2, world.ids(8, 9)))
    after = learner.snapshot().arrays
    assert all(np.array_equal(after[n], array) for n, array in before.items())


@each
def test_a_class_without_a_kept_row(name: str) -> None:
    world = World()
    window = usual(world)
    empty = replace(window, features={**window.features, "c0006": Examples(0, np.zeros((0, 16), np.float32))})
    assert fitted(name, empty).seen.sum() == 6


@each
@pytest.mark.parametrize("space", [SPACE, SIGNED])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_features(name: str, space: Space, value: float) -> None:
    world = World(space)
    constant = rows_of(usual(world), lambda e: Examples(e.count, np.full_like(e.rows, value)))
    later = world.window(2, world.ids(8, 10), world.ids(6, 9))
    fitted(name, constant, later, space=space)


@each
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_attributes(name: str, value: float) -> None:
    window = usual(World())
    equal = tuple(Description(d.class_id, np.full(6, value)) for d in window.described)
    fitted(name, replace(window, described=equal))


@each
def test_half_precision_input(name: str) -> None:
    half = rows_of(usual(World()), lambda e: Examples(e.count, e.rows.astype(np.float16)))
    widened = rows_of(half, lambda e: Examples(e.count, e.rows.astype(np.float32)))
    assert fitted(name, half).digest == fitted(name, widened).digest


@each
def test_all_seen_classes_retired_and_others_learned(name: str) -> None:
    world = World()
    retired = Window(2, retired=tuple(world.ids(0, 6)))
    generation = fitted(name, usual(world), retired, world.window(3, learned=world.ids(6, 8)))
    assert generation.seen.tolist() == [True, True]


@each
def test_shared_space(name: str) -> None:
    world = World(SHARED)
    later = world.window(2, world.ids(8, 10), world.ids(6, 9))
    assert fitted(name, usual(world), later, space=SHARED).calibration["shared"] is True


@each
def test_the_seed_changes_the_networks(name: str) -> None:
    window = usual(World())
    assert fitted(name, window).digest != fitted(name, window, space=replace(SPACE, seed=4)).digest


@pytest.mark.parametrize("name", ["paper", "authors-code"])
def test_every_row_and_every_replayed_one_is_trained_on_in_every_epoch(name: str) -> None:
    world, watch = World(), Watch()
    learner = create(name, SPACE, {"hidden": 24, "epochs": 3, "replay": 50})
    learner.fit(world.window(1, world.ids(0, 8), world.ids(0, 6), rows=100), watch)
    assert (watch.told[-1].step, watch.told[-1].steps) == (30, 30)  # 600 rows are ten batches
    later = learner.fit(world.window(2, learned=world.ids(6, 8), rows=100), watch)
    rows = 200 + later.calibration["replay_kept"]
    assert watch.told[-1].steps == 3 * -(-rows // 64)


def test_adversarial_takes_the_same_number_of_steps_however_long_a_window_is() -> None:
    world, watch = World(), Watch()
    learner = create("adversarial", SPACE, {"hidden": 24, "max_iterations": 7})
    learner.fit(world.window(1, world.ids(0, 8), world.ids(0, 6), rows=500), watch)
    assert (watch.told[-1].step, watch.told[-1].steps) == (7, 7)


@each
def test_progress_tells_every_loss_by_name(name: str) -> None:
    watch = Watch()
    create(name, SPACE, SMALL[name]).fit(usual(World()), watch)
    told = {term for progress in watch.told for term in progress.losses}
    assert {"gan_d", "gan_g", "rcl", "pcl", "snl", "nuclear"} <= told
    assert all(np.isfinite(value) for progress in watch.told for value in progress.losses.values())


@each
def test_what_was_replayed_is_recorded(name: str) -> None:
    first, second, _ = stream(World())
    alone = fitted(name, first).calibration
    assert (alone["replay_kept"], alone["replay_rejected"]) == (0, 0)
    later = fitted(name, first, second).calibration
    rows = 12 if name == "adversarial" else 22  # as many as the window has of a class; as printed for CUB
    assert later["replay_kept"] + later["replay_rejected"] == 6 * rows  # classes seen before


@each
def test_as_much_is_replayed_as_asked_for_where_it_need_not_be_even(name: str) -> None:
    first, second, _ = stream(World())
    uneven = {"replay_even": False} if name == "adversarial" else {}
    told = fitted(name, first, second, replay=40, **uneven).calibration
    assert told["replay_kept"] + told["replay_rejected"] == 6 * 40


@each
def test_replay_can_be_switched_off(name: str) -> None:
    first, second, _ = stream(World())
    without = fitted(name, first, second, replay=0)
    assert (without.calibration["replay_kept"], without.calibration["replay_rejected"]) == (0, 0)


@each
@pytest.mark.parametrize("term", ["gan", "rcl", "pcl", "snl", "sal", "nuclear"])
def test_a_loss_that_is_switched_off_no_longer_counts(name: str, term: str) -> None:
    windows = stream(World())[:2]
    changed = fitted(name, *windows, **{term: 0.0}).digest != fitted(name, *windows).digest
    assert changed == ((name, term) != ("authors-code", "sal"))  # which has no gradient there


@each
def test_with_every_loss_off_the_networks_stay_as_they_were(name: str) -> None:
    off = dict.fromkeys(("gan", "rcl", "pcl", "snl", "sal", "nuclear"), 0.0)
    off |= {"moments": 0.0} if name == "adversarial" else {}
    window = usual(World())
    steps = "max_iterations" if name == "adversarial" else "epochs"
    one, two = (create(name, SPACE, {**SMALL[name], **off, steps: n}) for n in (1, 5))
    one.fit(window)
    two.fit(window)
    weights = [{n: a for n, a in x.snapshot().arrays.items() if n.startswith("memory.G")} for x in (one, two)]
    assert all(np.array_equal(weights[0][n], weights[1][n]) for n in weights[0])


@each
def test_without_calibration_there_is_no_offset(name: str) -> None:
    generation = fitted(name, *stream(World())[:2], calibrate=False)
    assert generation.calibration["offset"] == 0


@each
def test_training_that_does_not_stay_finite_fails_by_name_and_leaves_no_trace(name: str) -> None:
    learner = create(name, SPACE, {**SMALL[name], "learning_rate": 1e38})
    before = to_bytes(learner.snapshot())
    with pytest.raises(TrainingFailed, match=r"window 1.*not finite"):
        learner.fit(usual(World()))
    assert to_bytes(learner.snapshot()) == before


@each
def test_networks_of_another_size_are_refused(name: str) -> None:
    learner = create(name, SPACE, SMALL[name])
    learner.fit(usual(World()))
    other = create(name, SPACE, {**SMALL[name], "hidden": 25})
    before = to_bytes(other.snapshot())
    with pytest.raises(ValueError, match=r"G\.w1"):
        other.restore(learner.snapshot())
    assert to_bytes(other.snapshot()) == before


@each
@pytest.mark.parametrize(("option", "value"), [("batch", 0), ("steps", 0), ("hidden", 0), ("replay", -1)])
def test_sizes_that_cannot_work_are_usage_errors(name: str, option: str, value: int) -> None:
    if option == "steps":
        option = "max_iterations" if name == "adversarial" else "epochs"
    with pytest.raises(UsageError, match=f"option '{option}' must"):
        create(name, SPACE, {option: value})


@each
@pytest.mark.parametrize("option", ["unseen_batch", "neighbours"])
def test_sizes_may_be_zero_where_there_is_nothing_to_do(name: str, option: str) -> None:
    assert fitted(name, *stream(World())[:2], **{option: 0}).servable
