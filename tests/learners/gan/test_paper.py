"""The printed system: its constants, what each of its losses moves in a step, its replay and its score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from worlds import SPACE, World, stream

from stream_cgzsl.learners import create
from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.networks import Generator, Projector, noise
from stream_cgzsl.learners.gan.paper import Classes, PaperOptions, Training, attributes_of, class_means
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics

SMALL = {"hidden": 24, "max_iterations": 8}
OFF = dict.fromkeys(("gan", "rcl", "pcl", "snl", "sal", "nuclear"), 0.0)


def statistics() -> ClassStatistics:
    window = stream(World())[0]
    return ClassStatistics.empty(SPACE).after_descriptions(window).after_features(window)


def a_training(options: PaperOptions) -> Training:
    rng = torch.Generator().manual_seed(0)
    networks = (Generator(6, 24, 16, "sigmoid", rng), Projector(6, 24, 16, "relu", rng))
    return Training(networks, Classes.of(statistics(), options.neighbours, torch.device("cpu")), options)


def a_step(training: Training) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(1)
    x = losses.unit(torch.rand(10, 16, generator=rng))
    y = torch.randint(6, (10,), generator=rng)
    unseen = training.classes.places.draw_unseen(4, rng)
    return training.step(x, y, unseen, noise(14, training.classes.attributes, rng))


def test_the_constants_are_the_printed_ones() -> None:
    o = PaperOptions()
    assert (o.learning_rate, o.weight_decay, o.batch, o.unseen_batch, o.epochs) == (0.005, 1e-5, 64, 16, 50)
    assert (o.hidden, o.scale, o.neighbours, o.tolerance, o.replay) == (1024, 10, 3, 0.01, 300)
    assert set(o.weights.values()) == {1.0}
    group = a_training(o).optimise_g.param_groups[0]
    assert (group["lr"], group["weight_decay"]) == (0.005, 1e-5)


@pytest.mark.parametrize(
    ("term", "moves"), [("gan", "DG"), ("rcl", "D"), ("pcl", "G"), ("snl", "D"), ("sal", "G"), ("nuclear", "D")]
)
def test_in_a_step_each_loss_moves_what_it_is_meant_for(term: str, moves: str) -> None:
    training = a_training(replace(PaperOptions(), **{**OFF, term: 1.0}))
    before = {name: network.arrays("") for name, network in (("D", training.d), ("G", training.g))}
    a_step(training)
    after = {"D": training.d.arrays(""), "G": training.g.arrays("")}
    moved = [name for name in "DG" if any(not np.array_equal(before[name][p], after[name][p]) for p in before[name])]
    assert "".join(moved) == moves


def test_the_losses_of_a_step_are_those_of_their_functions() -> None:
    training = a_training(PaperOptions())
    c = training.classes
    rng = torch.Generator().manual_seed(1)
    x = losses.unit(torch.rand(10, 16, generator=rng))
    y = torch.randint(6, (10,), generator=rng)
    unseen = c.places.draw_unseen(4, rng)
    z = noise(14, c.attributes, rng)
    with torch.no_grad():
        fake = training.g.generate(z, c.attributes[torch.cat((y, unseen))])
        p = training.d(c.attributes)
        s, made = losses.unit(p), losses.unit(fake)
        expected = {
            "gan_d": losses.gan_projector(x, y, made[:10], y, s, False),
            "rcl": losses.rcl(x, y, s[:6], 10.0),
            "nuclear": losses.nuclear(p[:6], c.means),
            "snl": losses.snl(made[10:], unseen, s, 10.0),
        }
    terms = training.step(x, y, unseen, z)
    with torch.no_grad():
        s = losses.unit(training.d(c.attributes))  # G meets the D of after its step
        i, means = class_means(fake, torch.cat((y, unseen)))
        expected |= {
            "gan_g": losses.gan_generator(made[:10], y, s, False),
            "pcl": losses.pcl(made[:10], y, s[:6], 10.0),
            "sal": losses.sal(means, c.near[i], c.similarity[i], c.nearness[i], 0.01),
        }
    assert terms.keys() == expected.keys()
    for name, term in terms.items():
        torch.testing.assert_close(term.detach(), expected[name])


def test_projections_are_always_those_of_the_newest_projector() -> None:
    training = a_training(PaperOptions())
    a_step(training)
    torch.testing.assert_close(training.projections, training.d(training.classes.attributes))


def test_class_means_are_means_of_a_class() -> None:
    x = torch.tensor([[1.0, 0.0], [3.0, 2.0], [5.0, 5.0]])
    classes, means = class_means(x, torch.tensor([7, 7, 2]))
    assert (classes.tolist(), means.tolist()) == ([2, 7], [[5.0, 5.0], [2.0, 1.0]])


def test_classes_are_seen_first_with_their_neighbours_means() -> None:
    known = statistics()
    classes = Classes.of(known, 2, torch.device("cpu"))
    attributes = attributes_of(known, torch.device("cpu"))
    assert classes.places.order.tolist() == list(range(8)) and classes.places.seen == 6
    cosines = attributes @ attributes.T
    for i in range(8):
        best = sorted((j for j in range(6) if j != i), key=lambda j: -float(cosines[i, j]))[:2]
        torch.testing.assert_close(classes.near[i], losses.unit(classes.means)[best])
        torch.testing.assert_close(classes.similarity[i], cosines[i, best])


def test_the_published_score_is_the_cosine_with_the_projection() -> None:
    learner = create("paper", SPACE, {**SMALL, "calibrate": False})
    generation = learner.fit(stream(World())[0])
    arrays = learner.snapshot().arrays
    a = attributes_of(statistics(), torch.device("cpu")).numpy()
    w1, b1, w2, b2 = (arrays[f"memory.D.{name}"] for name in ("w1", "b1", "w2", "b2"))
    projections = np.maximum(np.maximum(a @ w1.T + b1, 0) @ w2.T + b2, 0)
    x = np.sqrt(World(seed=5).rows("c0002", 3))
    lengths = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(projections, axis=1)
    expected = x @ projections.T / np.maximum(lengths, 1e-12)
    assert (generation.metric, generation.biases.any()) == ("cosine", False)
    np.testing.assert_allclose(generation.scores(np.square(x)), expected, atol=1e-5)


def test_seen_classes_are_learned_where_nothing_pulls_away_from_them() -> None:
    world = World(noise=0.2)
    options = {"hidden": 64, "max_iterations": 150, "snl": 0.0, "learning_rate": 1e-3}
    generation = create("paper", SPACE, options).fit(world.window(1, world.ids(0, 6), world.ids(0, 6), rows=40))
    right = [(generation.classify(world.rows(c, 50)).indices[:, 0] == i).mean() for i, c in enumerate(world.ids(0, 6))]
    assert np.mean(right) > 0.8
