from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from worlds import World

from stream_cgzsl.learners.interface import Space
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.shared_space import SharedSpace, alignment, decide_shared


def learned(space: Space, aligned: bool, seen: int = 8) -> ClassStatistics:
    world = World(replace(space, shared=aligned), classes=12)
    window = world.window(1, world.ids(0, 12), world.ids(0, seen))
    return ClassStatistics.empty(space).after_descriptions(window).after_features(window)


EQUAL = Space(attributes=16, features=16, signed=True)


@pytest.mark.parametrize("aligned", [True, False])
def test_an_undeclared_space_is_measured(aligned: bool) -> None:
    found = decide_shared(learned(EQUAL, aligned))
    assert (found.shared, found.why) == (aligned, "measured")
    assert found.alignment is not None and (found.alignment > 3) == aligned


@pytest.mark.parametrize("declared", [True, False])
def test_a_declared_space_is_believed(declared: bool) -> None:
    space = replace(EQUAL, shared=declared)
    assert decide_shared(learned(space, not declared)) == SharedSpace(declared, "declared")


def test_spaces_of_different_dimensions_are_not_shared() -> None:
    space = Space(attributes=6, features=16, signed=True)
    assert decide_shared(learned(space, False)) == SharedSpace(False, "dimensions differ")


def test_one_class_cannot_tell() -> None:
    assert decide_shared(learned(EQUAL, True, seen=1)) == SharedSpace(False, "too few seen classes to tell")


def test_alignment_counts_standard_deviations_over_all_shuffles() -> None:
    random = np.random.default_rng(0)
    vectors, means = random.normal(size=(5, 4)), random.normal(size=(5, 4))

    def own(order: tuple[int, ...]) -> float:
        a, b = vectors[list(order)] - vectors.mean(axis=0), means - means.mean(axis=0)
        return float(((a / np.linalg.norm(a, axis=1)[:, None]) * (b / np.linalg.norm(b, axis=1)[:, None])).sum())

    sums = [own(order) for order in permutations(range(5))]
    expected = (own((0, 1, 2, 3, 4)) - np.mean(sums)) / np.std(sums)
    assert alignment(vectors, means) == pytest.approx(expected)


def test_equal_vectors_align_with_nothing() -> None:
    assert alignment(np.ones((4, 3)), np.random.default_rng(0).normal(size=(4, 3))) == 0.0
