"""The same system in the whitened space: the way there and back, its constants, its step, what it learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from worlds import SPACE, World, stream

from stream_cgzsl.learners import create
from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.adversarial import (
    Adversarial,
    AdversarialOptions,
    AdversarialTraining,
    decided,
    projected,
)
from stream_cgzsl.learners.gan.inputs import (
    MOST_LENGTH,
    Inputs,
    WhitenedClasses,
    into_space,
    published_directions,
    within_class_variance,
)
from stream_cgzsl.learners.gan.networks import noise
from stream_cgzsl.learners.interface import Space
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.whitened.space import WhitenedSpace, whitened_space
from stream_cgzsl.learners.whitened.whitening import whiten

SIGNED = replace(SPACE, signed=True)
SHARED = Space(attributes=16, features=16, signed=True, shared=True)
OFF = dict.fromkeys(("gan", "rcl", "pcl", "snl", "sal", "nuclear", "moments"), 0.0)


def statistics(space: Space = SPACE, rows: int = 200) -> ClassStatistics:
    world = World(space)
    window = world.window(1, world.ids(0, 8), world.ids(0, 6), rows)
    return ClassStatistics.empty(space).after_descriptions(window).after_features(window)


def standard_of(known: ClassStatistics, shared: bool = False) -> WhitenedSpace:
    return whitened_space(known, shared, whiten(known.moments, symmetric=True))


def test_the_constants_are_the_methods() -> None:
    o = AdversarialOptions()
    assert (o.hidden, o.learning_rate, o.max_iterations, o.batch, o.unseen_batch) == (512, 1e-3, 100, 64, 16)
    assert (o.scale, o.neighbours, o.tolerance) == (25, 4, 0.01)
    expected = {"gan_d": 0.02, "gan_g": 0.02, "rcl": 0.1, "pcl": 1, "snl": 0.001, "sal": 1, "nuclear": 1}
    expected |= {"first_moment": 10, "second_moment": 10}
    assert o.weights_in(shared=False) == expected
    assert o.weights_in(shared=True) == pytest.approx({**expected, "rcl": 0.3})


def test_fresh_networks_are_linear_and_timid() -> None:
    g, d = Adversarial(Space(30, 400, True), {"hidden": 200})._untrained(torch.Generator().manual_seed(0))
    assert (g.output, d.output, g.gain, d.gain) == ("linear", "linear", 0.05, 0.05)
    xavier = (2 / (200 + 400)) ** 0.5
    assert float(g.w2.detach().std()) == pytest.approx(xavier, rel=0.05)
    assert float(d.w2.detach().std()) == pytest.approx(0.1 * xavier, rel=0.05)


def test_class_means_go_to_the_standardised_space_and_back() -> None:
    known = statistics()
    standard = standard_of(known)
    means = torch.from_numpy(known.means).float()
    back = standard.means.float() @ published_directions(standard) + standard.centre.float()
    torch.testing.assert_close(back, means, atol=1e-4, rtol=1e-3)
    there = into_space(standard, means)
    torch.testing.assert_close(losses.unit(there), losses.unit(standard.means.float()), atol=1e-4, rtol=1e-3)


def test_the_variance_inside_classes_is_that_of_rows() -> None:
    world = World(SIGNED)
    window = world.window(1, world.ids(0, 6), world.ids(0, 6), 400)
    known = ClassStatistics.empty(SIGNED).after_descriptions(window).after_features(window)
    standard = standard_of(known)
    scale = standard.radius * standard.whitening.variance**0.5
    rows = [torch.from_numpy(e.rows / np.linalg.norm(e.rows, axis=1, keepdims=True)) for e in window.features.values()]
    deviations = [into_space(standard, x.double()) / scale - m for x, m in zip(rows, standard.means, strict=True)]
    found = torch.cat(deviations).square().sum(0) / known.moments.freedom
    torch.testing.assert_close(within_class_variance(standard), found, rtol=1e-6, atol=1e-9)


def test_attributes_have_unit_variance_and_stay_near() -> None:
    standard = standard_of(statistics())
    inputs = Inputs.of(standard)
    assert float(inputs.attributes[:6].square().mean()) == pytest.approx(1, rel=1e-5)
    far = replace(standard, attributes=1e6 * standard.attributes)
    assert float(Inputs.of(far).attributes.square().mean().sqrt()) == pytest.approx(MOST_LENGTH, rel=1e-5)


def test_in_a_shared_space_both_networks_start_from_half_the_prior() -> None:
    standard = standard_of(statistics(SHARED), shared=True)
    g, d = Adversarial(SHARED, {"hidden": 8})._untrained(torch.Generator().manual_seed(0))
    with torch.no_grad():
        d.w2.zero_()
        g.w2.zero_()
    inputs = Inputs.of(standard)
    assert standard.prior is not None
    half = 0.5 * standard.prior.float()
    torch.testing.assert_close(inputs.through(d), half)
    torch.testing.assert_close(inputs.through(g, torch.ones(8, 16)), half)


def a_training(**options: float) -> AdversarialTraining:
    learner = Adversarial(SPACE, {"hidden": 24, **options})
    networks = learner._untrained(torch.Generator().manual_seed(0))
    return AdversarialTraining(networks, WhitenedClasses(standard_of(statistics()), 4), learner.options)


def a_step(training: AdversarialTraining, move_g: bool) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(1)
    x = losses.unit(torch.randn(10, 16, generator=rng))
    y = torch.randint(6, (10,), generator=rng)
    unseen = training.classes.places.draw_unseen(4, rng)
    return training.step(x, y, unseen, noise(24, training.classes.inputs.attributes, rng), move_g)


@pytest.mark.parametrize(
    ("term", "moves"),
    [("gan", "DG"), ("rcl", "D"), ("pcl", "G"), ("snl", "D"), ("sal", "G"), ("nuclear", "D"), ("moments", "G")],
)
@pytest.mark.parametrize("move_g", [True, False])
def test_in_a_step_each_loss_moves_what_it_is_meant_for(term: str, moves: str, move_g: bool) -> None:
    training = a_training(**{**OFF, term: 1.0})
    networks = {"D": training.d, "G": training.g}
    before = {name: network.arrays("") for name, network in networks.items()}
    a_step(training, move_g)
    after = {name: network.arrays("") for name, network in networks.items()}
    moved = [name for name in "DG" if any(not np.array_equal(before[name][p], after[name][p]) for p in before[name])]
    assert "".join(moved) == (moves if move_g else moves.replace("G", ""))


def test_a_step_tells_every_loss() -> None:
    terms = a_step(a_training(), move_g=True)
    assert set(terms) == set(AdversarialOptions().weights_in(shared=False))


def test_the_rate_is_constant_for_half_the_window_and_then_falls_to_zero() -> None:
    training = a_training()
    rates = []
    for done in (0.0, 0.5, 0.75, 1.0):
        training.slow_down(done)
        rates.append({g["lr"] for o in (training.optimise_g, training.optimise_d) for g in o.param_groups})
    assert rates == [{1e-3}, {1e-3}, {5e-4}, {0.0}]


def test_g_learns_the_moments_of_a_class() -> None:
    training = a_training(**{**OFF, "moments": 1.0, "learning_rate": 5e-3})
    c = training.classes
    rng = torch.Generator().manual_seed(2)
    for _ in range(600):
        y = torch.randint(6, (64,), generator=rng)
        x = losses.unit(torch.randn(64, 16, generator=rng))
        training.step(x, y, y[:0], noise(128, c.inputs.attributes, rng), move_g=True)
    with torch.no_grad():
        labels = torch.arange(6).repeat_interleave(2000)
        made = c.inputs[labels].through(training.g, noise(len(labels), c.inputs.attributes, rng)).view(6, 2000, 16)
    assert float((made.mean(1) - c.means).square().sum(1).mean()) < 0.1
    spread = made.var(1).mean(0).sum()
    assert float(spread / c.variance.sum()) == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize("space", [SPACE, SIGNED])
@pytest.mark.slow
def test_seen_and_unseen_classes_are_recognised(space: Space) -> None:
    world = World(space, classes=40, noise=0.2)
    learner = create("adversarial", space, {"hidden": 128})
    learner.fit(world.window(1, world.ids(0, 20), world.ids(0, 18), rows=20))
    generation = learner.fit(world.window(2, world.ids(20, 40), world.ids(18, 36), rows=20))
    ids = np.array(generation.class_ids)

    def accuracy(classes: list[str]) -> float:
        return float(
            np.mean([(ids[generation.classify(world.rows(c, 40)).indices[:, 0]] == c).mean() for c in classes])
        )

    assert accuracy(world.ids(0, 36)) > 0.5  # chance is 0.025
    assert accuracy(world.ids(36, 40)) > 0.25


@pytest.mark.slow
def test_d_keeps_a_share_of_its_weights_from_window_to_window() -> None:
    first, second, _ = stream(World())
    learner = Adversarial(SPACE, {"hidden": 24, **OFF})  # without losses nothing but the blend moves D
    learner.fit(first)
    old = learner.snapshot().arrays["memory.D.w1"]
    learner.fit(second)
    new = learner.snapshot().arrays["memory.D.w1"]
    fresh = learner._untrained(learner._rng(2, "networks"))[1].w1.detach().numpy()
    np.testing.assert_allclose(new, 0.3 * old + 0.7 * fresh, rtol=1e-5, atol=1e-7)


def test_few_examples_hardly_move_a_class_from_what_d_says_and_many_do() -> None:
    world = World(SPACE, classes=12)
    learner = Adversarial(SPACE, {"hidden": 24})
    learner.fit(world.window(1, world.ids(0, 12), world.ids(0, 10)))
    networks = learner._networks_in(learner._memory)
    assert networks is not None
    shares = {}
    for n in (1, 10_000):
        counts = dict.fromkeys(learner._statistics.moments.counts, n)
        known = replace(learner._statistics, moments=replace(learner._statistics.moments, counts=counts))
        space = learner._spaces.get(known, False)
        with torch.no_grad():
            said = Inputs.of(space).through(networks[1]).double()[space.seen]
        found = projected(space, known, networks[1])[space.seen]
        shares[n] = float((found - said).norm() / (space.means - said).norm())
        assert shares[n] == pytest.approx(float(decided(space, known, networks[1])[0]))
    assert 0 < shares[1] < 0.9 < shares[10_000] < 1
