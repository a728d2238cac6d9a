"""What the process over class means promises, whatever its constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from worlds import SPACE, Array, World

from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Space
from stream_cgzsl.learners.kernel.class_process import ClassProcess, Posterior, class_process, posterior
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.windows.window import Window

SHARED = Space(attributes=16, features=16, signed=True, shared=True)
both_spaces = pytest.mark.parametrize("space", [SPACE, SHARED], ids=["unshared", "shared"])

COUNTS = (1, 30, 2, 9, 1, 16, 3, 8, 17, 5)
"""Examples of the seen classes; the four classes after them are unseen."""


def rows_of(world: World, counts: Sequence[int] = COUNTS) -> dict[str, Array]:
    return {c: world.rows(c, n) for c, n in zip(world.ids(0, len(counts)), counts, strict=True)}


def learned(space: Space, *windows: Window) -> ClassStatistics:
    statistics = ClassStatistics.empty(space)
    for window in windows:
        statistics = statistics.after_descriptions(window).after_features(window)
    return statistics


def process_of(statistics: ClassStatistics) -> ClassProcess:
    return class_process(statistics, bool(statistics.space.shared), torch.device("cpu"))


def small_process(space: Space, counts: Sequence[int] = COUNTS) -> ClassProcess:
    world = World(space, classes=len(counts) + 4)
    return process_of(learned(space, Window.from_arrays(1, world.vectors, rows_of(world, counts))))


def weights_of(space: Space) -> torch.Tensor:
    return torch.linspace(-0.5, 0.5, space.attributes, dtype=torch.float64)


def found(process: ClassProcess, space: Space) -> Posterior:
    return posterior(process, weights_of(space))


def with_count(process: ClassProcess, place: int, count: float) -> ClassProcess:
    """As if the mean of a seen class were that of so many examples; everything else stays."""
    counts = process.counts.clone()
    counts[place] = count
    return replace(process, counts=counts)


def without(process: ClassProcess, place: int) -> ClassProcess:
    """As if a seen class had no examples; everything else stays."""
    rest = torch.arange(len(process.counts)) != place
    seen = process.seen.clone()
    seen[process.seen.nonzero()[place]] = False
    return replace(process, seen=seen, counts=process.counts[rest], means=process.means[rest])


@both_spaces
def test_no_example_is_the_limit_of_ever_less_evidence(space: Space) -> None:
    """A class with examples that say nothing is where a class without any is: where the others predict it."""
    process = small_process(space)
    for place in range(len(COUNTS)):
        nothing, none = found(with_count(process, place, 1e-10), space), found(without(process, place), space)
        torch.testing.assert_close(nothing.projections, none.projections, atol=1e-8, rtol=0)
        assert float(nothing.decided[place]) < 1e-8 and float(none.decided[place]) == 0


@both_spaces
def test_with_ever_more_examples_a_class_is_at_its_own_mean(space: Space) -> None:
    process = small_process(space)
    for place in range(len(COUNTS)):
        sure = found(with_count(process, place, 1e10), space)
        torch.testing.assert_close(sure.projections[place], process.means[place], atol=1e-8, rtol=0)
        assert float(sure.decided[place]) == pytest.approx(1)


@both_spaces
def test_a_class_is_between_its_own_mean_and_what_the_others_predict(space: Space) -> None:
    """P = D + f (M - D), f = v / (v + nu / n): D and v are mean and variance of the process given the other classes."""
    process = small_process(space)
    has, n, m = np.flatnonzero(process.seen.numpy()), process.counts.numpy(), process.means.numpy()
    expected = np.zeros((len(process.seen), space.features)) if process.expected is None else process.expected.numpy()
    share = n / (n + 5) / (n / (n + 5)).sum()
    p = process.attributes.numpy() * np.exp(weights_of(space).numpy())
    p = p - share @ p[has]
    p = p / np.sqrt(share @ np.square(p[has]).sum(axis=1))
    k = 0.6 * p @ p.T + 0.4 * np.exp(-0.5 * np.square(p[:, None] - p).sum(axis=2)) + 0.2 * np.eye(len(p))
    projections, decided = found(process, space)
    for place, c in enumerate(has):
        others = np.delete(np.arange(len(has)), place)
        seen = has[others]
        r = k[c, seen] @ np.linalg.inv(k[np.ix_(seen, seen)] + np.diag(process.noise / n[others]))
        predicted, variance = expected[c] + r @ (m[others] - expected[seen]), k[c, c] - r @ k[seen, c]
        f = variance / (variance + process.noise / n[place])
        assert float(decided[c]) == pytest.approx(f)
        np.testing.assert_allclose(projections[c].numpy(), predicted + f * (m[place] - predicted), atol=1e-10)


@both_spaces
def test_own_examples_decide_the_more_the_more_there_are(space: Space) -> None:
    process = small_process(space)
    assert not found(process, space).decided[~process.seen].any()
    for place in range(len(COUNTS)):
        shares = [float(found(with_count(process, place, n), space).decided[place]) for n in (1, 2, 3, 5, 20, 1000)]
        assert shares[0] > 0 and shares == sorted(set(shares)) and shares[-1] < 1


def test_noiseless_examples_decide_alone() -> None:
    process = replace(small_process(SPACE), noise=0.0)
    projections, decided = found(process, SPACE)
    torch.testing.assert_close(projections[process.seen], process.means)
    torch.testing.assert_close(decided, process.seen.to(torch.float64))


def test_one_class_alone_is_centred_on_nothing() -> None:
    """Its examples decide all but what the noise of their mean leaves, and unseen classes are not predicted at all."""
    process = small_process(SPACE, (5,))
    projections, decided = found(process, SPACE)
    variance = 0.4 + 0.2  # the kernel of a class with itself where attributes say nothing, and what is its own
    assert not process.centre.any() and not projections[1:].any()
    assert float(decided[0]) == pytest.approx(variance / (variance + process.noise / 5))
    torch.testing.assert_close(projections[0], decided[0] * process.means[0])


@both_spaces
def test_an_example_of_another_class_moves_an_unseen_class(space: Space) -> None:
    world = World(space, classes=14)
    first, second = Window.from_arrays(1, world.vectors, rows_of(world)), world.window(2, learned=["c0003"], rows=1)
    one, two = (
        found(process_of(learned(space, *windows)), space).projections for windows in ([first], [first, second])
    )
    assert float((one[12] - two[12]).norm()) > 1e-3 * float(one[12].norm())


@both_spaces
def test_unseen_classes_know_nothing_of_each_other(space: Space) -> None:
    world = World(space, classes=14)
    rows = rows_of(world)
    all_described = process_of(learned(space, Window.from_arrays(1, world.vectors, rows)))
    fewer = {c: vector for c, vector in world.vectors.items() if c != "c0012"}
    one_less = process_of(learned(space, Window.from_arrays(1, fewer, rows)))
    rest = [place for place in range(14) if place != 12]
    for more, less in zip(found(all_described, space), found(one_less, space), strict=True):
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
    one = found(process_of(learned(space, Window.from_arrays(1, world.vectors, rows))), space)
    two = found(process_of(learned(space, renamed)), space)
    torch.testing.assert_close(one.projections, two.projections.flip(0), atol=1e-9, rtol=0)
    torch.testing.assert_close(one.decided, two.decided.flip(0), atol=1e-10, rtol=0)


@both_spaces
def test_order_and_windows_of_examples_mean_nothing(space: Space) -> None:
    """All at once, or one by one in any order."""
    world = World(space, classes=14)
    rows = rows_of(world)
    at_once = learned(space, Window.from_arrays(1, world.vectors, rows))
    single = [(c, row) for c, many in rows.items() for row in many]
    order = np.random.default_rng(0).permutation(len(single))
    one_by_one = learned(
        space,
        Window.from_arrays(1, world.vectors, {}),
        *(Window.from_arrays(2 + i, {}, {single[j][0]: single[j][1][None]}) for i, j in enumerate(order)),
    )
    assert at_once.moments.counts == one_by_one.moments.counts
    assert (at_once.moments.rows, at_once.moments.freedom) == (one_by_one.moments.rows, one_by_one.moments.freedom)
    np.testing.assert_allclose(at_once.means, one_by_one.means, atol=1e-12)
    np.testing.assert_allclose(at_once.moments.scatter, one_by_one.moments.scatter, atol=1e-12)
    for one, two in zip(*(found(process_of(s), space) for s in (at_once, one_by_one)), strict=True):
        torch.testing.assert_close(one, two, atol=1e-9, rtol=0)


def test_twenty_windows_of_one_example_teach_what_one_of_twenty_does() -> None:
    """Class after class, so that only the last five windows train: before them there are too few classes."""
    world = World(classes=6)
    rows = rows_of(world, (5, 5, 5, 5))
    slow, fast = create("evidence", SPACE), create("evidence", SPACE)
    slow.describe(Window.from_arrays(0, world.vectors, {}))
    number = 0
    for class_id, many in rows.items():
        for row in many:
            number += 1
            one = slow.fit(Window.from_arrays(number, {}, {class_id: row[None]}))
    two = fast.fit(Window.from_arrays(number, world.vectors, {c: many[::-1] for c, many in rows.items()}))
    assert number == 20
    for name in ("vectors", "biases", "centre"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-5)
