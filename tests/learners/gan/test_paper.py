"""The printed system: what each of its losses moves in a step, at which scale, its means, its replay and its score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from worlds import SPACE, World, stream

from stream_cgzsl.learners import create
from stream_cgzsl.learners.calibration.prequential import Withheld
from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.base import Networks
from stream_cgzsl.learners.gan.classes import (
    Classes,
    Means,
    attributes_of,
    class_means,
    means_in,
    means_with,
    remembered,
)
from stream_cgzsl.learners.gan.networks import Generator, Projector, noise
from stream_cgzsl.learners.gan.paper import Paper, PaperOptions, Training
from stream_cgzsl.learners.interface import Snapshot
from stream_cgzsl.learners.snapshots import from_bytes, to_bytes
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.learner import Lesson
from stream_cgzsl.windows.window import Window

SMALL = {"hidden": 24, "epochs": 2}
OFF = dict.fromkeys(("gan", "rcl", "pcl", "snl", "sal", "nuclear"), 0.0)
CPU = torch.device("cpu")


def statistics() -> ClassStatistics:
    window = stream(World())[0]
    return ClassStatistics.empty(SPACE).after_descriptions(window).after_features(window)


def raw_means(window: Window) -> Means:
    return {c: given.rows.astype(np.float64).mean(0) for c, given in window.features.items()}


def a_training(options: PaperOptions) -> Training:
    rng = torch.Generator().manual_seed(0)
    networks = (Generator(6, 24, 16, "sigmoid", rng), Projector(6, 24, 16, "relu", rng))
    classes = Classes.of(statistics(), raw_means(stream(World())[0]), options.neighbours, CPU)
    return Training(networks, classes, options)


def a_batch(training: Training) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Generator]:
    rng = torch.Generator().manual_seed(1)
    x = losses.unit(torch.rand(10, 16, generator=rng))
    y = torch.randint(6, (10,), generator=rng)
    return x, y, training.classes.places.draw_unseen(4, rng), rng


@pytest.mark.parametrize(
    ("term", "moves"), [("gan", "DG"), ("rcl", "D"), ("pcl", "G"), ("snl", "D"), ("sal", "G"), ("nuclear", "D")]
)
def test_in_a_step_each_loss_moves_what_it_is_meant_for(term: str, moves: str) -> None:
    training = a_training(replace(PaperOptions(), **{**OFF, term: 1.0}))
    before = {name: network.arrays("") for name, network in (("D", training.d), ("G", training.g))}
    training.step(*a_batch(training))
    after = {"D": training.d.arrays(""), "G": training.g.arrays("")}
    moved = [name for name in "DG" if any(not np.array_equal(before[name][p], after[name][p]) for p in before[name])]
    assert "".join(moved) == moves


def test_the_losses_of_a_step_are_those_of_their_functions() -> None:
    training = a_training(PaperOptions())
    c = training.classes
    x, y, unseen, rng = a_batch(training)
    made = torch.cat((y, unseen, c.others(torch.cat((y, unseen)))))
    z = noise(len(made), c.attributes, torch.Generator().set_state(rng.get_state()))
    with torch.no_grad():
        fake = training.g.generate(z, c.attributes[made])
        p = training.d(c.attributes)
        s, one = losses.unit(p), losses.unit(fake)
        expected = {
            "gan_d": losses.gan_projector(x, y, one[:10], y, s, False),
            "rcl": losses.rcl(x, y, s[:6], 1.0),
            "nuclear": losses.nuclear(p[:6], c.means),
            "snl": losses.snl(one[10:14], unseen, s, 1.0),
        }
    terms = training.step(x, y, unseen, rng)
    with torch.no_grad():
        s = losses.unit(training.d(c.attributes))  # G meets the D of after its step
        means = torch.stack([fake[made == label].mean(0) for label in range(8)])  # of all classes, not of the batch
        expected |= {
            "gan_g": losses.gan_generator(one[:10], y, s, False),
            "pcl": losses.pcl(one[:10], y, s[:6], 1.0),
            "sal": losses.sal(means, c.near, c.similarity, c.nearness, 0.01),
        }
    assert terms.keys() == expected.keys()
    for name, term in terms.items():
        torch.testing.assert_close(term.detach(), expected[name])


def test_the_alignment_loss_pulls_projections_to_the_means_of_features_as_they_come() -> None:
    training = a_training(replace(PaperOptions(), **{**OFF, "nuclear": 1.0}))
    x, y, unseen, rng = a_batch(training)
    expected = np.stack(list(raw_means(stream(World())[0]).values()))
    assert np.square(expected).sum(1).mean() > 4  # far from length 1
    with torch.no_grad():
        p = training.d(training.classes.attributes)[:6].numpy()
    found = float(training.step(x, y, unseen, rng)["nuclear"].detach())
    assert found == pytest.approx(np.square(p - expected).sum(1).mean(), rel=1e-5)


def test_training_stays_finite_where_a_projection_is_dead_and_where_features_are_the_projection() -> None:
    training = a_training(PaperOptions())
    with torch.no_grad():
        training.d.w2.zero_()
        training.d.b2.fill_(-1.0)  # every unit of every projection is off
        training.projections = training.d(training.classes.attributes)
    training.projections.requires_grad_()
    x, y, unseen, rng = a_batch(training)
    terms = training.step(x, y, unseen, rng)
    for network in (training.g, training.d):
        assert all(bool(torch.isfinite(p).all()) for p in network.parameters())
    assert all(bool(torch.isfinite(term)) for term in terms.values())


def test_projections_are_always_those_of_the_newest_projector() -> None:
    training = a_training(PaperOptions())
    training.step(*a_batch(training))
    torch.testing.assert_close(training.projections, training.d(training.classes.attributes))


def test_class_means_are_means_of_a_class() -> None:
    x = torch.tensor([[1.0, 0.0], [3.0, 2.0], [5.0, 5.0]])
    classes, means = class_means(x, torch.tensor([7, 7, 2]))
    assert (classes.tolist(), means.tolist()) == ([2, 7], [[5.0, 5.0], [2.0, 1.0]])


def test_classes_are_seen_first_with_their_neighbours_means() -> None:
    known = statistics()
    classes = Classes.of(known, raw_means(stream(World())[0]), 2, CPU)
    attributes = attributes_of(known, CPU)
    assert classes.places.order.tolist() == list(range(8)) and classes.places.seen == 6
    cosines = attributes @ attributes.T
    for i in range(8):
        best = sorted((j for j in range(6) if j != i), key=lambda j: -float(cosines[i, j]))[:2]
        torch.testing.assert_close(classes.near[i], losses.unit(classes.means)[best])
        torch.testing.assert_close(classes.similarity[i], cosines[i, best])
    assert classes.others(torch.tensor([1, 1, 6])).tolist() == [0, 2, 3, 4, 5, 7]


# ---- means of features as they come


def test_means_are_merged_over_windows_and_forgotten_with_their_class() -> None:
    windows = stream(World())
    known, means = ClassStatistics.empty(SPACE), Means()
    rows: dict[str, list[np.ndarray]] = {}
    for window in windows:
        before = known.after_descriptions(window)
        means = means_with(
            before,
            means_in(from_bytes(to_bytes(remembered(means)))) if means else means,
            window.features,
            rescaled=False,
        )
        known = before.after_features(window)
        for class_id in window.retired:
            rows.pop(class_id, None)
        for class_id, given in window.features.items():
            rows.setdefault(class_id, []).append(given.rows)
    assert means.keys() == rows.keys() == known.moments.counts.keys()
    for class_id, blocks in rows.items():
        np.testing.assert_allclose(means[class_id], np.concatenate(blocks).astype(np.float64).mean(0), rtol=1e-12)


def test_rescaled_means_are_the_published_ones_at_a_length_that_makes_numbers_about_one() -> None:
    window = stream(World())[0]
    before = ClassStatistics.empty(SPACE).after_descriptions(window)
    means = means_with(before, {}, window.features, rescaled=True)
    np.testing.assert_allclose(np.stack(list(means.values())), 4 * statistics().means, rtol=1e-12)


def test_nothing_is_remembered_before_the_first_example() -> None:
    assert means_in(Snapshot({}, {})) == {}


def test_a_snapshot_without_means_is_refused_by_name() -> None:
    learner = Paper(SPACE, SMALL)
    learner.fit(stream(World())[0])
    kept = learner.snapshot()
    old = Snapshot({n: a for n, a in kept.arrays.items() if n != "memory.means"}, kept.meta)
    with pytest.raises(ValueError, match="means"):
        Paper(SPACE, SMALL).restore(old)


# ---- what it publishes


@pytest.mark.parametrize("rescale", [False, True])
def test_the_published_score_is_the_cosine_with_the_projection(rescale: bool) -> None:
    learner = create("paper", SPACE, {**SMALL, "rescale": rescale})
    generation = learner.fit(stream(World())[0])
    arrays = learner.snapshot().arrays
    a = attributes_of(statistics(), CPU).numpy()
    w1, b1, w2, b2 = (arrays[f"memory.D.{name}"] for name in ("w1", "b1", "w2", "b2"))
    projections = np.maximum(np.maximum(a @ w1.T + b1, 0) @ w2.T + b2, 0)
    x = World(seed=5).rows("c0002", 3)
    seen_as = np.sqrt(x) if rescale else x
    lengths = np.linalg.norm(seen_as, axis=1)[:, None] * np.linalg.norm(projections, axis=1)
    expected = seen_as @ projections.T / np.maximum(lengths, 1e-12)
    assert (generation.metric, generation.transform) == ("cosine", "sqrt" if rescale else "none")
    assert not generation.biases.any() and not generation.centre.any()
    np.testing.assert_allclose(generation.scores(x), expected, atol=1e-5)


@pytest.mark.parametrize(("calibrate", "kept"), [(False, 12), (True, 10)])
def test_no_row_is_held_back_unless_it_is_calibrated(calibrate: bool, kept: int) -> None:
    learner = Counting(SPACE, {**SMALL, "calibrate": calibrate, "epochs": 1})
    learner.fit(stream(World())[0])  # 12 rows of each of six classes
    assert learner.rows == 6 * kept


class Counting(Paper):
    """Counts the rows of its own that it trains on."""

    rows = 0

    def _optimise(self, lesson: Lesson, withheld: Withheld, *others: Any) -> Networks:
        self.rows += sum(len(given.rows) for given in withheld.trained.values())
        return super()._optimise(lesson, withheld, *others)


def test_seen_classes_are_learned_where_nothing_pulls_away_from_them() -> None:
    world = World(noise=0.2)
    options = {"hidden": 64, "epochs": 40, "snl": 0.0, "learning_rate": 1e-3}
    generation = create("paper", SPACE, options).fit(world.window(1, world.ids(0, 6), world.ids(0, 6), rows=40))
    right = [(generation.classify(world.rows(c, 50)).indices[:, 0] == i).mean() for i, c in enumerate(world.ids(0, 6))]
    assert np.mean(right) > 0.8
