"""What the published code does instead of what is printed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from worlds import SPACE, World, stream

from stream_cgzsl.learners import create
from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.authors_code import AuthorsCode, AuthorsOptions, AuthorsTraining, mean_likeness
from stream_cgzsl.learners.gan.classes import Classes, remembered
from stream_cgzsl.learners.gan.networks import Generator, Projector, noise
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics

OFF = dict.fromkeys(("gan", "rcl", "pcl", "snl", "sal", "nuclear"), 0.0)


def statistics() -> ClassStatistics:
    window = stream(World())[0]
    return ClassStatistics.empty(SPACE).after_descriptions(window).after_features(window)


def raw_means() -> dict[str, np.ndarray]:
    return {c: given.rows.astype(np.float64).mean(0) for c, given in stream(World())[0].features.items()}


@pytest.mark.parametrize(
    ("term", "moves"), [("gan", "DG"), ("rcl", "D"), ("pcl", "G"), ("snl", "G"), ("sal", ""), ("nuclear", "DG")]
)
def test_in_a_step_each_loss_moves_what_the_code_lets_it_move(term: str, moves: str) -> None:
    options = replace(AuthorsOptions(), **{**OFF, term: 1.0})
    rng = torch.Generator().manual_seed(0)
    networks = (Generator(6, 24, 16, "sigmoid", rng), Projector(6, 24, 16, "relu", rng))
    training = AuthorsTraining(networks, Classes.of(statistics(), raw_means(), 3, torch.device("cpu")), options)
    before = {name: network.arrays("") for name, network in zip("GD", networks, strict=True)}
    y = torch.randint(6, (10,), generator=rng)
    unseen = training.classes.places.draw_unseen(4, rng)
    x = losses.unit(torch.rand(10, 16, generator=rng))
    training.step(x, y, unseen, rng)
    after = {name: network.arrays("") for name, network in zip("GD", networks, strict=True)}
    moved = [name for name in "DG" if any(not np.array_equal(before[name][p], after[name][p]) for p in before[name])]
    assert "".join(moved) == moves


def test_the_mean_is_taken_before_the_logarithm() -> None:
    s = torch.eye(2)
    x = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    assert float(mean_likeness(x, torch.tensor([0, 0]), s, signed=False)) == pytest.approx(0.8)
    assert float(mean_likeness(x, torch.tensor([0, 0]), s, signed=True)) == pytest.approx(0.9)


def test_replay_passes_by_the_first_class_and_is_relabelled_by_the_nearest_mean() -> None:
    learner = AuthorsCode(SPACE, {"hidden": 24})
    before = statistics()
    learner._memory = remembered(raw_means())
    networks = learner._untrained(torch.Generator().manual_seed(0))
    classes = torch.arange(6)
    rows = 5
    found = learner._generate(networks, before, classes, rows, torch.Generator().manual_seed(1))

    g, d = networks
    a = losses.unit(torch.from_numpy(before.attributes).float())
    labels = classes.repeat_interleave(rows)
    with torch.no_grad():
        x = losses.unit(g.generate(noise(len(labels), a, torch.Generator().manual_seed(1)), a[labels]))
        s = losses.unit(d(a))[:6]
    means = losses.unit(torch.from_numpy(np.stack(list(raw_means().values()))).float())
    passes = []
    for row in range(rows):
        by_d, by_mean = int((s @ x[row]).argmax()), int((means @ x[row]).argmax())
        passes.append((by_d == 0) == (by_mean == 0))
    kept = [c * rows + row for c in range(6) for row in range(rows) if passes[row]]
    torch.testing.assert_close(found.rows.x, x[kept])
    assert found.rows.y.tolist() == [int((means @ x[i]).argmax()) for i in kept]
    assert found.rejected == 30 - len(kept)


def test_it_is_registered_and_takes_the_options_of_paper() -> None:
    learner = create("authors-code", SPACE, {"hidden": 8, "epochs": 1})
    assert learner.fit(stream(World())[0]).metric == "cosine"


def test_it_has_no_calibration_and_holds_no_row_back() -> None:
    generation = create("authors-code", SPACE, {"hidden": 8, "epochs": 1}).fit(stream(World())[0])
    assert generation.calibration["offset"] == 0 and "evidence_seen_classes" not in generation.calibration
    assert not generation.biases.any()
