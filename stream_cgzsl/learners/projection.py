"""Steps 6 and 7, the identifier projection: kernel regression from attributes to class means, and its score form."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from stream_cgzsl.learners.standard import TINY, Standard

RIDGE = 0.3
RBF = 0.4
PRIOR = 0.5
EXPONENT = 0.5
LEAN = 0.35


class Head(NamedTuple):
    """Score of a standardised feature x for class c: x . weights[c] + biases[c]."""

    weights: torch.Tensor  # [classes, features]
    biases: torch.Tensor  # [classes]


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
    standard: Standard, weights: torch.Tensor | None = None, prior: float = PRIOR, rbf: float = RBF
) -> torch.Tensor:
    """[classes, features]: the mean of a seen class, what attributes say of an unseen one. `weights` are logarithms."""
    attributes = standard.attributes if weights is None else standard.attributes * weights.exp()
    keep, rest = standard.seen.nonzero()[:, 0], (~standard.seen).nonzero()[:, 0]
    projections = standard.means.new_empty((len(standard.seen), standard.means.shape[1]))
    projections[keep] = standard.means
    if not len(rest):
        return projections
    contributions = regression(attributes, keep, rest, rbf)
    if standard.prior is None:
        projections[rest] = contributions @ standard.means
    else:
        expected = prior * standard.prior
        projections[rest] = expected[rest] + contributions @ (standard.means - expected[keep])
    return projections


def head(projections: torch.Tensor, signal: float, exponent: float = EXPONENT, lean: float = LEAN) -> Head:
    """Between cosine (exponent 1, no lean) and a Gaussian log-density: w = P / |P|^0.5, bias = -0.35 sb |P|^1.5."""
    lengths = torch.linalg.vector_norm(projections, dim=1).clamp_min(TINY)
    return Head(projections / lengths[:, None] ** exponent, -lean * signal * lengths ** (2 - exponent))
