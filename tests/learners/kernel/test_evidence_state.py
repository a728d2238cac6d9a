"""Places and blocks: growth, free places, and changes that are undone."""

from __future__ import annotations

import numpy as np
import pytest
from processes import CPU
from worlds import SPACE, World, arrays_equal

from stream_cgzsl.learners.kernel.blocks import BLOCK, Blocks, in_chunks
from stream_cgzsl.learners.kernel.evidence_state import EvidenceState
from stream_cgzsl.learners.numerics.triangular import mirrored, triangle
from stream_cgzsl.learners.statistics.moments import Moments
from stream_cgzsl.windows.window import Description, Window


def test_rows_are_where_they_were_put_in_whatever_block() -> None:
    blocks = Blocks(3, np.float32)
    places = np.array([2 * BLOCK + 1, 0, BLOCK - 1, BLOCK])
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    blocks.put(places, rows)
    np.testing.assert_array_equal(blocks.take(places[::-1]), rows[::-1])
    np.testing.assert_array_equal(blocks.take(np.array([1, BLOCK + 7, 9 * BLOCK])), np.zeros((3, 3)))
    taken = blocks.take(places[:1])
    taken += 1
    np.testing.assert_array_equal(blocks.take(places[:1]), rows[:1])
    assert blocks.take(np.zeros(0, np.int64)).shape == (0, 3)


def test_chunks_are_all_places_in_order() -> None:
    chunks = list(in_chunks(np.arange(2 * BLOCK + 5)))
    assert [len(chunk) for chunk in chunks] == [BLOCK, BLOCK, 5]
    np.testing.assert_array_equal(np.concatenate(chunks), np.arange(2 * BLOCK + 5))


@pytest.mark.parametrize("size", [0, 1, 5])
def test_a_symmetric_matrix_is_its_triangle(size: int) -> None:
    matrix = np.random.default_rng(0).normal(size=(size, size))
    matrix = matrix + matrix.T
    packed = triangle(matrix)
    assert packed.shape == (size * (size + 1) // 2,)
    np.testing.assert_array_equal(mirrored(packed, size), matrix)


def learn(state: EvidenceState, window: Window) -> None:
    for description in window.described:
        state.describe(description)
    if window.features:
        state.learn(Moments.of(window.features, SPACE.features, state.transform), CPU)


def taught(half_life: float = 0.0) -> tuple[World, EvidenceState]:
    world = World(classes=400)
    state = EvidenceState(SPACE, half_life)
    learn(state, world.window(1, world.ids(0, 10), world.ids(0, 6)))
    return world, state


def test_a_free_place_is_used_again_the_lowest_first() -> None:
    world, state = taught()
    for class_id in ("c0007", "c0002", "c0004"):
        state.retire(class_id)
    assert state.totals.taught == 4
    learn(state, world.window(2, world.ids(10, 14), world.ids(12, 14)))
    assert state.places.of(world.ids(10, 14)).tolist() == [2, 4, 7, 10]
    assert state.places.examples(state.places.of(world.ids(10, 14))).tolist() == [0, 0, 12, 12]
    assert not state.places.taught(np.array([2])).means.any()
    assert state.totals.taught == 6


def test_a_retired_class_leaves_nothing_behind_but_its_share_of_the_scatter() -> None:
    _, state = taught()
    freedom = state.totals.freedom
    place = state.places.of(["c0003"])
    state.retire("c0003")
    assert not state.places.attributes(place).any() and not state.places.taught(place).means.any()
    assert "c0003" not in state.places and "c0003" not in (state.snapshot().meta["class_ids"])
    assert state.totals.freedom == freedom and state.totals.examples == 72


@pytest.mark.parametrize("half_life", [0.0, 3.0])
def test_an_error_undoes_every_change(half_life: float) -> None:
    world, state = taught(half_life)
    learn(state, world.window(2, learned=world.ids(0, 3)))
    before = state.snapshot()

    third = world.window(3, world.ids(0, 300), [*world.ids(0, 3), *world.ids(200, 203)])  # more places, too
    fourth = world.window(4, world.ids(2, 3), world.ids(1, 3))

    def change(state: EvidenceState) -> None:
        for class_id in ("c0001", "c0008", "c0000"):
            state.retire(class_id)
        state.describe(Description("c0002", np.ones(6)))
        learn(state, third)
        state.mark_refresh()
        state.retire("c0002")
        learn(state, fourth)

    with pytest.raises(RuntimeError, match="stop"), state.all_or_nothing():
        change(state)
        raise RuntimeError("stop")
    after = state.snapshot()
    assert arrays_equal(before.arrays, after.arrays) and before.meta == after.meta
    twin = EvidenceState.restore(SPACE, half_life, before)
    for each in (state, twin):
        with each.all_or_nothing():
            change(each)
    one, two = state.snapshot(), twin.snapshot()
    assert arrays_equal(one.arrays, two.arrays) and one.meta == two.meta
