from __future__ import annotations

import torch

from stream_cgzsl.learners.baselines.ewc import fisher, penalty, penalty_gradient, scaled_to_one
from stream_cgzsl.learners.baselines.networks import Layers, usual
from stream_cgzsl.learners.baselines.prototypes import cosine_loss
from stream_cgzsl.learners.baselines.rows import Rows

RNG = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def layers() -> Layers:
    made = Layers.started((3, 5, 4), ("relu", "linear"), RNG, CPU, usual)
    for parameter in made.parameters:
        parameter.requires_grad_()
    return made


def test_the_gradient_of_the_penalty_is_that_of_the_sum() -> None:
    parts = [torch.randn(shape, generator=RNG) for shape in ((4, 3), (4,))]
    parameters = [part.requires_grad_() for part in parts]
    anchors, importance = ([torch.rand(p.shape, generator=RNG) for p in parts] for _ in range(2))
    expected = torch.autograd.grad(penalty(parameters, anchors, importance), parameters)
    for w, a, f, gradient in zip(parameters, anchors, importance, expected, strict=True):
        torch.testing.assert_close(penalty_gradient(w.detach(), a, f), gradient)


def test_fisher_is_the_mean_of_squared_gradients_of_single_rows() -> None:
    network, attributes = layers(), torch.randn(3, 3, generator=RNG)
    rows = Rows(torch.randn(6, 4, generator=RNG), torch.tensor([0, 1, 2, 0, 1, 2]))
    found = fisher(network, attributes, rows, 10.0, lambda: None)
    for number, parameter in enumerate(network.parameters):
        squares = []
        for row in range(6):
            loss = cosine_loss(rows.x[row : row + 1], rows.y[row : row + 1], network(attributes), 10.0)
            squares.append(torch.autograd.grad(loss, parameter)[0] ** 2)
        torch.testing.assert_close(found[number], torch.stack(squares).mean(0))


def test_fisher_is_scaled_to_one_over_all_parameters_together() -> None:
    found = scaled_to_one([torch.tensor([1.0, 3.0]), torch.tensor([[5.0]])])
    assert [part.flatten().tolist() for part in found] == [[0.0, 0.5], [1.0]]
    assert scaled_to_one([torch.ones(2)])[0].tolist() == [0.0, 0.0]
