"""What the process over class means promises, whatever its constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from processes import CPU, frame_of, state_of
from worlds import SPACE, Array, World

from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Space
from stream_cgzsl.learners.kernel.belief import Belief
from stream_cgzsl.learners.kernel.evidence_state import Classes
from stream_cgzsl.learners.kernel.frame import Frame
from stream_cgzsl.windows.window import Window

SHARED = Space(attributes=16, features=16, signed=True, shared=True)
both_spaces = pytest.mark.parametrize("space", [SPACE, SHARED], ids=["unshared", "shared"])

COUNTS = (1, 30, 2, 9, 1, 16, 3, 8, 17, 5)
"""Examples of the seen classes; the four classes after them are unseen."""


def rows_of(world: World, counts: Sequence[int] = COUNTS) -> dict[str, Array]:
    return {c: world.rows(c, n) for c, n in zip(world.ids(0, len(counts)), counts, strict=True)}


@dataclass(frozen=True)
class Process:
    """A frame and all classes, in order of id, with whatever counts and means."""

    frame: Frame
    classes: Classes

    @property
    def counts(self) -> torch.Tensor:
        return self.classes.counts

    @property
    def seen(self) -> torch.Tensor:
        return self.counts > 0


class Posterior(NamedTuple):
    projections: torch.Tensor  # P [classes, features], whitened, in units of a true mean
    decided: torch.Tensor  # f [classes]


def process_of(space: Space, *windows: Window) -> Process:
    state = state_of(space, *windows)
    frame, _ = frame_of(state, torch.linspace(-0.5, 0.5, space.attributes, dtype=torch.float64))
    return Process(frame, state.classes(state.places.of(state.places.class_ids), CPU))


def small_process(space: Space, counts: Sequence[int] = COUNTS) -> Process:
    world = World(space, classes=len(counts) + 4)
    return process_of(space, Window.from_arrays(1, world.vectors, rows_of(world, counts)))


def found(process: Process) -> Posterior:
    frame = process.frame
    seen = frame.observed(process.classes)
    belief = Belief.of([seen], len(frame.landmarks), frame.centre)
    projections, decided = belief.posterior(seen)
    return Posterior(projections @ torch.linalg.cholesky(frame.metric), decided)


def with_count(process: Process, place: int, count: float) -> Process:
    """As if the mean of a seen class were that of so many examples; everything else stays."""
    counts = process.counts.clone()
    counts[place] = count
    return replace(process, classes=process.classes._replace(counts=counts))


def own_mean(process: Process, place: int) -> torch.Tensor:
    frame = process.frame
    return (process.classes.means[place] - frame.centre) @ torch.linalg.cholesky(frame.metric)


@both_spaces
def test_no_example_is_the_limit_of_ever_less_evidence(space: Space) -> None:
    """A class with examples that say nothing is where a class without any is: where the others predict it."""
    process = small_process(space)
    for place in range(len(COUNTS)):
        nothing, none = found(with_count(process, place, 1e-10)), found(with_count(process, place, 0))
        torch.testing.assert_close(nothing.projections, none.projections, atol=1e-8, rtol=0)
        assert float(nothing.decided[place]) < 1e-8 and float(none.decided[place]) == 0


@both_spaces
def test_with_ever_more_examples_a_class_is_at_its_own_mean(space: Space) -> None:
    process = small_process(space)
    for place in range(len(COUNTS)):
        sure = found(with_count(process, place, 1e10))
        torch.testing.assert_close(sure.projections[place], own_mean(process, place), atol=1e-8, rtol=0)
        assert float(sure.decided[place]) == pytest.approx(1)


@both_spaces
def test_a_class_is_between_its_own_mean_and_what_the_others_predict(space: Space) -> None:
    """P = D + f (M - D), f = v / (v + nu / n): D and v are mean and variance of the process given the other classes.

    v follows from f with one example; D is where the class is without any.
    """
    process = small_process(space)
    projections, decided = found(process)
    for place, n in enumerate(COUNTS):
        predicted = found(with_count(process, place, 0)).projections[place]
        f = found(with_count(process, place, 1)).decided[place]
        variance = process.frame.noise * f / (1 - f)
        torch.testing.assert_close(decided[place], variance / (variance + process.frame.noise / n))
        between = predicted + decided[place] * (own_mean(process, place) - predicted)
        torch.testing.assert_close(projections[place], between, atol=1e-9, rtol=0)


@both_spaces
def test_own_examples_decide_the_more_the_more_there_are(space: Space) -> None:
    process = small_process(space)
    assert not found(process).decided[~process.seen].any()
    for place in range(len(COUNTS)):
        shares = [float(found(with_count(process, place, n)).decided[place]) for n in (1, 2, 3, 5, 20, 1000)]
        assert shares[0] > 0 and shares == sorted(set(shares)) and shares[-1] < 1


def test_noiseless_examples_decide_alone() -> None:
    process = small_process(SPACE)
    process = replace(process, frame=replace(process.frame, noise=0.0))
    projections, decided = found(process)
    for place in range(len(COUNTS)):
        torch.testing.assert_close(projections[place], own_mean(process, place))
    torch.testing.assert_close(decided, process.seen.to(torch.float64))


def test_one_class_alone_is_centred_on_nothing() -> None:
    """Its examples decide all but what the noise of their mean leaves, and unseen classes are not predicted at all."""
    process = small_process(SPACE, (5,))
    projections, decided = found(process)
    variance = 0.4 + 0.2  # the kernel of a class with itself where attributes say nothing, and what is its own
    assert not process.frame.centre.any() and not projections[1:].any()
    assert float(decided[0]) == pytest.approx(variance / (variance + process.frame.noise / 5))
    torch.testing.assert_close(projections[0], decided[0] * own_mean(process, 0))


@both_spaces
def test_an_example_of_another_class_moves_an_unseen_class(space: Space) -> None:
    world = World(space, classes=14)
    first, second = Window.from_arrays(1, world.vectors, rows_of(world)), world.window(2, learned=["c0003"], rows=1)
    one, two = (found(process_of(space, *windows)).projections for windows in ([first], [first, second]))
    assert float((one[12] - two[12]).norm()) > 1e-3 * float(one[12].norm())


@both_spaces
def test_unseen_classes_know_nothing_of_each_other(space: Space) -> None:
    world = World(space, classes=14)
    rows = rows_of(world)
    all_described = process_of(space, Window.from_arrays(1, world.vectors, rows))
    fewer = {c: vector for c, vector in world.vectors.items() if c != "c0012"}
    one_less = process_of(space, Window.from_arrays(1, fewer, rows))
    rest = [place for place in range(14) if place != 12]
    for more, less in zip(found(all_described), found(one_less), strict=True):
        torch.testing.assert_close(more[rest], less, atol=1e-10, rtol=0)


@both_spaces
def test_names_of_classes_mean_nothing(space: Space) -> None:
    """The same classes under other ids, so in another order, are at the same places."""
    world = World(space, classes=14)
    rows = rows_of(world)
    other = {c: f"x{13 - place:02}" for place, c in enumerate(world.vectors)}
    renamed = Window.from_arrays(
        1, {other[c]: v for c, v in world.vectors.items()}, {other[c]: r for c, r in rows.items()}
    )
    one = found(process_of(space, Window.from_arrays(1, world.vectors, rows)))
    two = found(process_of(space, renamed))
    torch.testing.assert_close(one.projections, two.projections.flip(0), atol=1e-9, rtol=0)
    torch.testing.assert_close(one.decided, two.decided.flip(0), atol=1e-10, rtol=0)


@both_spaces
def test_order_and_windows_of_examples_mean_nothing(space: Space) -> None:
    """All at once, or one by one in any order."""
    world = World(space, classes=14)
    rows = rows_of(world)
    at_once = [Window.from_arrays(1, world.vectors, rows)]
    single = [(c, row) for c, many in rows.items() for row in many]
    order = np.random.default_rng(0).permutation(len(single))
    one_by_one = [
        Window.from_arrays(1, world.vectors, {}),
        *(Window.from_arrays(2 + i, {}, {single[j][0]: single[j][1][None]}) for i, j in enumerate(order)),
    ]
    one, two = (state_of(space, *windows) for windows in (at_once, one_by_one))
    assert (one.totals.examples, one.totals.freedom) == (two.totals.examples, two.totals.freedom)
    np.testing.assert_allclose(one.totals.scatter, two.totals.scatter, atol=1e-12)
    for once, slowly in zip(*(found(process_of(space, *windows)) for windows in (at_once, one_by_one)), strict=True):
        torch.testing.assert_close(once, slowly, atol=1e-9, rtol=0)


def test_twenty_windows_of_one_example_teach_what_one_of_twenty_does() -> None:
    """Where every window refreshes. Class after class, so that only the last five train: before there are too few."""
    world = World(classes=6)
    rows = rows_of(world, (5, 5, 5, 5))
    slow, fast = (create("evidence", SPACE, {"growth": 0.0}) for _ in range(2))
    slow.describe(Window.from_arrays(0, world.vectors, {}))
    number = 0
    for class_id, many in rows.items():
        for row in many:
            number += 1
            one = slow.fit(Window.from_arrays(number, {}, {class_id: row[None]}))
    untaught = fast.snapshot()
    untaught.meta["state"]["refreshes"] = number - 1  # training draws the same random numbers
    fast.restore(untaught)
    two = fast.fit(Window.from_arrays(number, world.vectors, {c: many[::-1] for c, many in rows.items()}))
    assert number == 20
    for name in ("vectors", "biases", "centre"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-5)
