"""Step 6, the identifier projection: kernel regression from attributes to class means."""

from __future__ import annotations

from typing import Any

import torch

from stream_cgzsl.learners.whitened.space import PRIOR, TINY, WhitenedSpace

RIDGE = 0.3
RBF = 0.4


def kernel(x: torch.Tensor, y: torch.Tensor, rbf: float = RBF) -> torch.Tensor:
    """0.6 x.y + 0.4 exp(-|x - y|^2 / 2): [n, attributes], [m, attributes] -> [n, m]."""
    products = x @ y.T
    if rbf == 0:
        return products
    distances = x.square().sum(dim=1)[:, None] + y.square().sum(dim=1) - 2 * products
    return (1 - rbf) * products + rbf * torch.exp(-0.5 * distances.clamp_min(0))


def regression(attributes: torch.Tensor, keep: torch.Tensor, rest: torch.Tensor, rbf: float = RBF) -> torch.Tensor:
    """What each kept class contributes to each other one: kernel(w, u) [kernel(u, u) + 0.3 I]^-1, [rest, keep].

    `attributes` are already weighted; `keep` and `rest` are indices. Centring and scale are those of the kept classes.
    """
    kept = attributes[keep]
    centre = kept.mean(dim=0)
    length = (kept - centre).square().sum(dim=1).mean().clamp_min(TINY**2).sqrt()
    u, w = (kept - centre) / length, (attributes[rest] - centre) / length
    gram = kernel(u, u, rbf)
    ridge = torch.full((len(u),), RIDGE, dtype=u.dtype, device=u.device)
    return solve(gram + torch.diag(ridge), kernel(u, w, rbf)).T


class _Solve(torch.autograd.Function):
    """A^-1 B for a symmetric positive definite A, with one factorisation for the value and for both derivatives."""

    @staticmethod
    def forward(ctx: Any, matrix: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        factor = torch.linalg.cholesky(matrix)
        solution = torch.cholesky_solve(right, factor)
        ctx.save_for_backward(factor, solution)
        return solution

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        factor, solution = ctx.saved_tensors
        right = torch.cholesky_solve(gradient, factor)
        return -right @ solution.T, right


def solve(matrix: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """[n, n] symmetric positive definite, [n, m] -> matrix^-1 right."""
    solution: torch.Tensor = _Solve.apply(matrix, right)  # type: ignore[no-untyped-call]
    return solution


def project(
    space: WhitenedSpace, weights: torch.Tensor | None = None, prior: float = PRIOR, rbf: float = RBF
) -> torch.Tensor:
    """[classes, features]: the mean of a seen class, the prediction from attributes for an unseen one.

    `weights` are logarithms, one per attribute.
    """
    attributes = space.attributes if weights is None else space.attributes * weights.exp()
    keep, rest = space.seen.nonzero()[:, 0], (~space.seen).nonzero()[:, 0]
    projections = space.means.new_empty((len(space.seen), space.means.shape[1]))
    projections[keep] = space.means
    if not len(rest):
        return projections
    contributions = regression(attributes, keep, rest, rbf)
    if space.prior is None:
        projections[rest] = contributions @ space.means
    else:
        expected = prior * space.prior
        projections[rest] = expected[rest] + contributions @ (space.means - expected[keep])
    return projections
