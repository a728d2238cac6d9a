"""When a window refreshes the frame, what fades, and that rounding does not add up between refreshes."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Any

import numpy as np
import pytest
from processes import dense, kernel
from worlds import SPACE, World

from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Learner, Space
from stream_cgzsl.learners.numerics.triangular import mirrored
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.window import Examples, Window


def started(options: dict[str, Any], rows: int = 5) -> tuple[World, Learner]:
    """Thirty described classes, twenty of them with examples."""
    world = World(classes=40, noise=0.3)
    learner = create("evidence", SPACE, options)
    learner.fit(world.window(1, world.ids(0, 30), world.ids(0, 20), rows))
    return world, learner


def single_examples(world: World, windows: int, classes: int) -> Iterator[Window]:
    """Windows of one example."""
    random = np.random.default_rng(0)
    for number in range(2, windows + 2):
        yield world.window(number, learned=[world.ids(0, classes)[random.integers(classes)]], rows=1)


def state_of(learner: Learner) -> Any:
    return learner.snapshot().meta["state"]


@pytest.mark.parametrize("growth", [0.05, 0.2])
def test_a_window_refreshes_when_examples_have_grown_by_a_share(growth: float) -> None:
    world, learner = started({"growth": growth})
    at_refresh, examples, refreshes = 100, 100, 1
    for window in single_examples(world, windows=40, classes=20):
        made, examples = learner.fit(window), examples + 1
        assert isinstance(made, Generation) == (examples >= (1 + growth) * at_refresh)
        if isinstance(made, Generation):
            at_refresh, refreshes = examples, refreshes + 1
            assert made.calibration["refresh"] == refreshes
    assert state_of(learner)["at_refresh"][0] == at_refresh
    assert 2 <= refreshes <= 1 + log(1.4) / log(1 + growth)


def test_a_window_refreshes_when_classes_with_examples_have_grown_by_a_share() -> None:
    world, learner = started({"growth": 0.05}, rows=100)
    kinds = [type(learner.fit(world.window(2 + i, learned=world.ids(20 + i, 21 + i), rows=1))) for i in range(3)]
    assert kinds == [Generation, Delta, Generation]  # 21 of 20 classes, 22 and 23 of 21


def test_all_that_arrived_counts_where_only_some_rows_were_kept() -> None:
    world, learner = started({"growth": 0.5})
    made = learner.fit(Window(2, (), (), {"c0003": Examples(49, world.rows("c0003", 2))}))
    assert isinstance(made, Delta) and made.examples.tolist() == [54]
    assert isinstance(learner.fit(world.window(3, learned=["c0003"], rows=1)), Generation)


def test_descriptions_and_retirements_never_refresh() -> None:
    world, learner = started({"growth": 0.0})
    for window in (world.window(2, world.ids(0, 40)), Window(3, retired=tuple(world.ids(0, 10))), Window(4)):
        assert isinstance(learner.describe(window), Delta)
    assert isinstance(learner.fit(world.window(5, learned=["c0020"], rows=1)), Generation)


def test_without_any_example_every_window_is_whole_and_the_first_example_refreshes() -> None:
    world = World(classes=40)
    learner = create("evidence", SPACE)
    for number in (1, 2):
        made = learner.describe(world.window(number, world.ids(0, 10 * number)))
        assert isinstance(made, Generation) and made.incremental and not made.servable
    made = learner.fit(world.window(3, learned=["c0003"], rows=1))
    assert isinstance(made, Generation) and made.incremental and made.servable
    made = learner.describe(Window(4, retired=("c0003",)))
    assert isinstance(made, Generation) and made.incremental and not made.servable
    assert isinstance(learner.fit(world.window(5, learned=["c0004"], rows=1)), Generation)


@pytest.mark.parametrize("shared", [True, False])
def test_whether_a_space_is_shared_is_decided_at_refreshes(shared: bool) -> None:
    space = Space(attributes=16, features=16, signed=True)
    world = World(Space(attributes=16, features=16, signed=True, shared=shared), classes=40)
    learner = create("evidence", space, {"growth": 5.0})
    made = learner.fit(world.window(1, world.ids(0, 30), world.ids(0, 20)))
    assert isinstance(made, Generation) and made.calibration["shared"] == shared
    delta = learner.fit(world.window(2, world.ids(30, 35), world.ids(0, 5)))
    assert isinstance(delta, Delta)
    expected = dense(learner.snapshot(), exact=False)
    for class_id, vector in zip(delta.class_ids, delta.vectors, strict=True):
        np.testing.assert_allclose(vector, expected.vectors[class_id], atol=1e-7)


# ---- drift


def test_a_count_halves_in_half_a_life_of_windows_with_examples() -> None:
    world, learner = started({"growth": 100.0, "half_life": 4.0}, rows=8)

    def count(class_id: str) -> float:
        snapshot = learner.snapshot()
        return float(snapshot.arrays["state.counts"][state_of(learner)["class_ids"].index(class_id)])

    freedom = state_of(learner)["freedom"]
    learner.fit(world.window(2, world.ids(30, 35)))
    for number in (3, 4, 5):
        learner.fit(world.window(number, learned=["c0000"], rows=1))
    delta = learner.fit(world.window(6, learned=["c0007"], rows=2))
    assert isinstance(delta, Delta) and delta.examples.tolist() == [10]
    assert count("c0007") == pytest.approx(8 / 2 + 2)
    assert count("c0001") == 8  # nobody has asked
    assert state_of(learner)["freedom"] == pytest.approx(freedom / 2 + 2 + sum(2 ** (-n / 4) for n in (3, 2, 1)))
    expected = dense(learner.snapshot(), exact=False)
    np.testing.assert_allclose(delta.vectors[0], expected.vectors["c0007"], atol=1e-7)


def test_with_a_half_life_a_window_refreshes_when_enough_has_faded() -> None:
    """After h log2(1 + growth) windows with examples, and all counts are those of that window then."""
    world, learner = started({"growth": 1.0, "half_life": 3.0}, rows=80)
    kinds = [type(learner.fit(world.window(n, learned=["c0000"], rows=1))) for n in range(2, 8)]
    assert kinds == [Delta, Delta, Generation] * 2
    counts = learner.snapshot().arrays["state.counts"]
    np.testing.assert_allclose(counts[1:20], 80 / 4)


# ---- rounding


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"half_life": 50.0}], ids=["for ever", "fading"])
def test_after_a_thousand_updates_the_belief_is_what_solving_anew_finds(options: dict[str, Any]) -> None:
    world, learner = started({"growth": 1e9, **options})
    for window in single_examples(world, windows=1000, classes=30):
        assert isinstance(learner.fit(window), Delta)
    arrays, noise = learner.snapshot().arrays, learner.snapshot().meta["frame"]["noise"]
    p = (arrays["state.attributes"] - arrays["frame.attribute_centre"]) * arrays["frame.attribute_gains"]
    phi = kernel(p, arrays["frame.landmarks"]) @ np.triu(
        mirrored(arrays["frame.inverse"], len(arrays["frame.landmarks"]))
    )
    delta = 0.2 + np.maximum(kernel(p, p).diagonal() - np.square(phi).sum(axis=1), 0)
    precision = 1 / (delta + noise / arrays["state.counts"])
    variance = np.linalg.inv(np.eye(phi.shape[1]) + (phi.T * precision) @ phi)
    mean = variance @ (phi.T * precision) @ (arrays["state.means"] - arrays["frame.centre"])
    np.testing.assert_allclose(arrays["belief.variance"], variance, atol=1e-10)
    np.testing.assert_allclose(arrays["belief.mean"], mean, atol=1e-10)
