from __future__ import annotations

import pytest
import torch

from stream_cgzsl.learners.kernel.projection import solve
from stream_cgzsl.learners.numerics.adam import Adam
from stream_cgzsl.learners.whitened.publication import head


def test_solving_has_the_right_derivatives() -> None:
    root = torch.randn(6, 6, dtype=torch.float64)
    right = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    root.requires_grad_()

    def solved(root: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return solve(root @ root.T + torch.eye(6, dtype=torch.float64), right)

    assert torch.autograd.gradcheck(solved, (root, right))


def test_a_cosine_head_has_vectors_of_length_one_and_no_bias() -> None:
    found = head(torch.randn(4, 5), 0.7, exponent=1.0, lean=0.0)
    torch.testing.assert_close(torch.linalg.vector_norm(found.weights, dim=1), torch.ones(4))
    assert not found.biases.any()


def test_a_projection_of_no_length_stays_finite() -> None:
    found = head(torch.zeros(2, 5), 0.7)
    assert bool(torch.isfinite(found.weights).all()) and bool(torch.isfinite(found.biases).all())


def test_adam_moves_as_torch_moves() -> None:
    start = torch.randn(7, generator=torch.Generator().manual_seed(1))
    ours, theirs = start.clone(), start.clone().requires_grad_()
    mine, reference = Adam([ours]), torch.optim.Adam([theirs])
    for step in range(20):
        rate = 0.1 / (1 + step)
        mine.step(torch.autograd.grad((ours**4).sum(), [ours]), rate)
        reference.param_groups[0]["lr"] = rate
        reference.zero_grad()
        (theirs**4).sum().backward()
        reference.step()
    assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-5, abs=1e-7)
