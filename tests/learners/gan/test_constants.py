"""Where each constant of `paper` comes from: the paper (with the place), the published code, or us."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from stream_cgzsl.learners.gan.authors_code import AuthorsOptions
from stream_cgzsl.learners.gan.classes import Classes
from stream_cgzsl.learners.gan.paper import Paper, PaperOptions, Training
from stream_cgzsl.learners.interface import Space

PRINTED = {
    "learning_rate": (0.005, "appendix, Implementation Details: Adam with a learning rate of 0.005"),
    "weight_decay": (1e-5, "appendix, Implementation Details: weight_decay of 0.00001"),
    "gan": (1.0, "appendix, Implementation Details: lambda 1 is 1"),
    "rcl": (1.0, "appendix, Implementation Details: lambda 2 is 1"),
    "pcl": (1.0, "appendix, Implementation Details: lambda 2 is 1"),
    "snl": (1.0, "appendix, Implementation Details: lambda 3 is 1"),
    "sal": (1.0, "appendix, Implementation Details: lambda 4 is 1"),
    "nuclear": (1.0, "appendix, Implementation Details: lambda 4 is 1"),
    "scale": (1.0, "section 4.2, equation 2: the softmax is of the cosines themselves"),
    "replay": (
        22,
        "appendix, Varying number of replayed samples: 150 per task for CUB, whose tasks have 7 seen classes",
    ),
    "calibrate": (False, "section 4.1: the class with the largest cosine, and nothing besides"),
    "rescale": (False, "section 4.3, equation 4: class means are means of the features"),
}
PUBLISHED = {"hidden": 1024, "batch": 64, "unseen_batch": 16, "epochs": 50, "neighbours": 3, "tolerance": 0.01}


def test_every_option_is_printed_or_from_the_published_code_and_has_that_value() -> None:
    assert PRINTED.keys() | PUBLISHED.keys() == {option.name for option in fields(PaperOptions)}
    options = PaperOptions()
    for name, (value, place) in PRINTED.items():
        assert getattr(options, name) == value, place
    for name, value in PUBLISHED.items():
        assert getattr(options, name) == value


def test_the_published_code_differs_in_one_of_them() -> None:
    paper, code = PaperOptions(), AuthorsOptions()
    assert [f.name for f in fields(PaperOptions) if getattr(paper, f.name) != getattr(code, f.name)] == ["scale"]
    assert code.scale == 10


@pytest.mark.parametrize(("signed", "outputs"), [(False, ("sigmoid", "relu")), (True, ("linear", "linear"))])
def test_outputs_are_those_of_the_published_code_for_features_that_are_never_negative(
    signed: bool, outputs: tuple[str, str]
) -> None:
    g, d = Paper(Space(6, 16, signed), {"hidden": 24})._untrained(torch.Generator().manual_seed(0))
    assert ((g.output, d.output), (g.gain, d.gain)) == (outputs, (1.0, 1.0))
    assert not any(bool(b.any()) for b in (g.b1, g.b2, d.b1, d.b2))


def test_the_optimiser_is_adam_with_the_printed_constants() -> None:
    learner = Paper(Space(6, 16, False), {"hidden": 24})
    networks = learner._untrained(torch.Generator().manual_seed(0))
    training = Training(networks, a_class(), learner.options)
    for optimiser in (training.optimise_g, training.optimise_d):
        assert type(optimiser) is torch.optim.Adam
        assert (optimiser.param_groups[0]["lr"], optimiser.param_groups[0]["weight_decay"]) == (0.005, 1e-5)


def a_class() -> Classes:
    """The least that training can be made for."""
    from stream_cgzsl.learners.gan.batches import SeenFirst

    one = torch.ones(1, 1)
    return Classes(
        SeenFirst.of(torch.tensor([True])), torch.ones(1, 6), torch.ones(1, 16), torch.ones(1, 1, 16), one, one, False
    )
