"""Windows that update what is believed in a frame, compared with the process solved anew."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from processes import dense
from worlds import SPACE, World

from stream_cgzsl.errors import Cancelled, TrainingFailed, UsageError
from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Learner, Monitor, Space
from stream_cgzsl.learners.snapshots import from_bytes, to_bytes
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.window import Description, Window

SHARED = Space(attributes=16, features=16, signed=True, shared=True)
spaces = pytest.mark.parametrize("space", [SPACE, SHARED], ids=["unshared", "shared"])
SELDOM = {"growth": 1000.0}
"""No refresh but the first."""


def taught(space: Space = SPACE, options: dict[str, Any] | None = None) -> tuple[World, Learner]:
    """Forty classes, thirty-six of them with 1 to 12 examples."""
    world = World(space, classes=60, noise=0.3)
    rows = {c: world.rows(c, 1 + place % 12) for place, c in enumerate(world.ids(0, 36))}
    learner = create("evidence", space, SELDOM | (options or {}))
    made = learner.fit(Window.from_arrays(1, {c: world.vectors[c] for c in world.ids(0, 40)}, rows))
    assert isinstance(made, Generation) and made.incremental
    return world, learner


def update(learner: Learner, window: Window) -> Delta:
    made = learner.fit(window)
    assert isinstance(made, Delta) and made.number == window.number
    assert list(made.class_ids) == sorted(set(made.class_ids))
    return made


def agrees(learner: Learner, delta: Delta, exact: bool, atol: float) -> None:
    expected = dense(learner.snapshot(), exact)
    for class_id, vector, bias in zip(delta.class_ids, delta.vectors, delta.biases, strict=True):
        np.testing.assert_allclose(vector, expected.vectors[class_id], atol=atol)
        np.testing.assert_allclose(bias, expected.biases[class_id], atol=atol)


@spaces
def test_more_examples_of_landmarks_are_the_exact_posterior(space: Space) -> None:
    world, learner = taught(space)
    for number, (first, end) in enumerate([(3, 4), (0, 9), (30, 36)], 2):
        delta = update(learner, world.window(number, learned=world.ids(first, end), rows=number))
        assert delta.class_ids == tuple(world.ids(first, end)) and delta.seen.all()
        agrees(learner, delta, exact=True, atol=1e-6)
        agrees(learner, delta, exact=False, atol=1e-7)


@spaces
def test_described_classes_are_where_the_examples_so_far_predict_them(space: Space) -> None:
    world, learner = taught(space)
    update(learner, world.window(2, learned=world.ids(5, 8), rows=4))
    delta = update(learner, world.window(3, world.ids(40, 44)))
    assert delta.class_ids == tuple(world.ids(40, 44)) and not delta.seen.any() and not delta.examples.any()
    agrees(learner, delta, exact=True, atol=1e-5)
    agrees(learner, delta, exact=False, atol=1e-7)


@spaces
def test_first_examples_are_folded_in_though_their_class_is_no_landmark(space: Space) -> None:
    world, learner = taught(space)
    delta = update(learner, world.window(2, world.ids(40, 50), world.ids(36, 46), rows=3))
    assert delta.examples.tolist() == [3] * 10 + [0] * 4
    agrees(learner, delta, exact=True, atol=0.03)
    agrees(learner, delta, exact=False, atol=1e-7)


@pytest.mark.parametrize("landmarks", [7, 20])
def test_fewer_landmarks_than_classes(landmarks: int) -> None:
    world, learner = taught(options={"landmarks": landmarks})
    assert len(learner.snapshot().arrays["frame.landmarks"]) == landmarks
    agrees(learner, update(learner, world.window(2, world.ids(40, 44), world.ids(0, 42))), exact=False, atol=1e-7)


def test_there_are_more_landmarks_than_attributes() -> None:
    _, learner = taught(options={"landmarks": 2})
    assert len(learner.snapshot().arrays["frame.landmarks"]) == SPACE.attributes + 1


@spaces
def test_a_class_described_again_is_where_its_new_description_says(space: Space) -> None:
    """With its examples; in the same window more of them may come, of this class and of others."""
    world, learner = taught(space)
    again = {c: world.vectors[c] + 0.5 for c in world.ids(0, 3)}
    delta = update(learner, Window.from_arrays(2, again, {}))
    assert delta.class_ids == tuple(again) and delta.examples.tolist() == [1, 2, 3]
    agrees(learner, delta, exact=False, atol=1e-7)
    again = {c: world.vectors[c] - 0.5 for c in world.ids(2, 5)}
    rows = {c: world.rows(c, 2) for c in world.ids(4, 7)}
    delta = update(learner, Window.from_arrays(3, again, rows))
    assert delta.class_ids == tuple(world.ids(2, 7)) and delta.examples.tolist() == [3, 4, 7, 8, 9]
    agrees(learner, delta, exact=False, atol=1e-7)


@spaces
def test_a_retired_class_says_nothing_any_more(space: Space) -> None:
    world, learner = taught(space)
    gone = tuple(world.ids(4, 12))
    delta = update(learner, Window(2, retired=(*gone, "unknown")))
    assert (delta.class_ids, delta.withdrawn) == ((), gone)
    delta = update(learner, world.window(3, world.ids(40, 44), world.ids(0, 2)))
    assert delta.withdrawn == ()
    agrees(learner, delta, exact=False, atol=1e-7)
    with pytest.raises(UsageError, match="not described"):
        learner.fit(world.window(4, learned=gone[:1]))


@spaces
@pytest.mark.parametrize("rows", [0, 2])
def test_a_class_retired_and_described_again_starts_fresh(space: Space, rows: int) -> None:
    world, learner = taught(space)
    window = world.window(2, ["c0009", "c0041"], ["c0009"] if rows else [], rows)
    delta = update(learner, replace(window, retired=("c0009", "c0010")))
    assert (delta.class_ids, delta.withdrawn) == (("c0009", "c0041"), ("c0010",))
    assert delta.examples.tolist() == [rows, 0]
    agrees(learner, delta, exact=False, atol=1e-7)


def test_a_window_that_brings_nothing_new_changes_nothing() -> None:
    world, learner = taught()
    before = to_bytes(learner.snapshot())
    renamed = (Description("c0003", np.asarray(world.vectors["c0003"], np.float32), "another name"),)
    delta = update(learner, Window(2, described=renamed, retired=("unknown",)))
    assert (delta.class_ids, delta.withdrawn, delta.vectors.shape) == ((), (), (0, SPACE.features))
    assert to_bytes(learner.snapshot()) == before


def test_order_inside_a_window_means_nothing() -> None:
    """Of descriptions and of classes; rows of a class come in the order of their hashes."""
    found = []
    for backwards in (False, True):
        world, learner = taught()
        window = world.window(2, world.ids(40, 50), world.ids(30, 45), rows=3)
        if backwards:
            features = dict(reversed(window.features.items()))
            window = replace(window, described=window.described[::-1], features=features)
        update(learner, window)
        update(learner, world.window(3, world.ids(50, 60)))
        found.append(to_bytes(learner.snapshot()))
    assert found[0] == found[1]


def mixed(space: Space) -> list[Window]:
    """Updates and refreshes, retirements and descriptions of all kinds."""
    world = World(space, classes=60, noise=0.3)
    ids = world.ids
    rest = {c: world.vectors[c] + 0.3 for c in ids(3, 5)}
    return [
        world.window(1, ids(0, 4)),
        world.window(2, ids(4, 30), ids(0, 25), rows=3),
        world.window(3, ids(30, 34), ids(0, 1), rows=1),
        replace(world.window(4, ids(2, 3), ids(6, 7), rows=1), retired=tuple(ids(1, 3))),
        Window.from_arrays(5, rest, {}),
        world.window(6, ids(34, 50), ids(28, 40), rows=2),
        world.window(7, learned=ids(10, 11), rows=1),
        Window(8, retired=tuple(ids(20, 22))),
        world.window(9, ids(50, 52), ids(50, 51), rows=1),
    ]


def bytes_of(made: Generation | Delta) -> tuple[object, ...]:
    arrays = [getattr(made, name) for name in ("seen", "vectors", "biases", "examples")]
    head = made.calibration if isinstance(made, Generation) else made.withdrawn
    return (type(made), made.number, made.class_ids, head, *(array.tobytes() for array in arrays))


@pytest.mark.slow
@spaces
@pytest.mark.parametrize("options", [{}, {"half_life": 2.0}, {"landmarks": 17}], ids=str)
def test_restored_before_any_window_the_rest_is_the_same(space: Space, options: dict[str, Any]) -> None:
    """Each window leads to the same bytes, published and kept; so all that follow do."""
    options = options | {"growth": 0.3}
    learner = create("evidence", space, options)
    kinds = []
    for window in mixed(space):
        twin = create("evidence", space, options)
        twin.restore(from_bytes(to_bytes(learner.snapshot())))
        made = learner.fit(window)
        assert bytes_of(made) == bytes_of(twin.fit(window))
        assert to_bytes(learner.snapshot()) == to_bytes(twin.snapshot())
        kinds.append(type(made))
    assert {*kinds[2:]} == {Generation, Delta}


class StopAfter(Monitor):
    def __init__(self, asked: int) -> None:
        self.left = asked

    def cancelled(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_an_update_has_all_of_its_effect_or_none() -> None:
    world, learner = taught()
    window = replace(world.window(2, world.ids(40, 50), world.ids(0, 30), rows=2), retired=("c0030", "c0050"))
    again = {"c0003": world.vectors["c0003"] + 1, "c0041": np.full(6, np.nan)}
    broken = Window.from_arrays(2, again, {"c0041": world.rows("c0041", 2)}, retired=("c0002", "c0005"))
    unknown = Window.from_arrays(2, {"c0040": world.vectors["c0040"]}, {"c0055": world.rows("c0055", 2)}, ("c0001",))
    before = to_bytes(learner.snapshot())
    for bad, error, monitor in (
        (window, Cancelled, StopAfter(5)),
        (broken, TrainingFailed, Monitor()),
        (unknown, UsageError, Monitor()),
    ):
        with pytest.raises(error):
            learner.fit(bad, monitor)
        assert to_bytes(learner.snapshot()) == before
    twin = create("evidence", SPACE, SELDOM)
    twin.restore(from_bytes(before))
    retired = replace(window, retired=("c0050",))
    assert bytes_of(update(learner, retired)) == bytes_of(update(twin, retired))
    assert to_bytes(learner.snapshot()) == to_bytes(twin.snapshot())


def memory_of_an_update(classes: int) -> int:
    """Bytes that one more example needs beside what is kept, as Python and numpy count them."""
    world = World(classes=classes)
    learner = create("evidence", SPACE, SELDOM)
    learner.fit(world.window(1, world.ids(0, classes), world.ids(0, 20)))
    windows = [world.window(number, learned=["c0003"], rows=1) for number in (2, 3)]
    update(learner, windows[0])
    tracemalloc.start()
    update(learner, windows[1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_an_update_needs_no_more_memory_where_there_are_more_classes() -> None:
    """So nothing is copied, sorted or computed class by class: a list of all ids alone would take 24,000 bytes more."""
    assert memory_of_an_update(3100) < memory_of_an_update(100) + 4000


def test_snapshots_of_another_format_are_refused() -> None:
    _, learner = taught()
    snapshot = learner.snapshot()
    with pytest.raises(ValueError, match="has format 1; this is 2"):
        learner.restore(replace(snapshot, meta={k: v for k, v in snapshot.meta.items() if k != "format"}))


@pytest.mark.parametrize("options", [{"growth": -0.1}, {"landmarks": 0}, {"half_life": -1.0}], ids=str)
def test_options_that_make_no_sense_are_usage_errors(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be at least"):
        create("evidence", SPACE, options)
