from __future__ import annotations

import numpy as np
import pytest
import torch

from stream_cgzsl.learners.numerics import triangular
from stream_cgzsl.learners.numerics.triangular import inverse_lower, times_lower, times_lower_transposed
from stream_cgzsl.learners.statistics.moments import Moments
from stream_cgzsl.learners.whitened.whitening import whiten

FEATURES = 23


def moments(rows: int) -> Moments:
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, FEATURES)) * np.linspace(0.1, 3, FEATURES)
    return Moments({"a": rows}, {"a": np.zeros(FEATURES)}, x.T @ x, rows, max(rows - 1, 0))


@pytest.mark.parametrize("rows", [5, 400])
@pytest.mark.parametrize("symmetric", [False, True])
def test_any_root_does_what_the_eigendecomposition_does(rows: int, symmetric: bool) -> None:
    given = moments(rows)
    found = whiten(given, symmetric=symmetric)
    values, vectors = np.linalg.eigh(given.scatter / given.freedom)
    v0 = values.mean()
    e = np.maximum(values, 0) / v0
    alpha = 1 / (1 + 0.2 * rows / FEATURES)
    q = np.sqrt((1 - alpha) * e + alpha)
    h = vectors / q
    sd = np.sqrt(e) / q
    x = np.random.default_rng(1).normal(size=(6, FEATURES))
    z = found.into(torch.from_numpy(x))
    np.testing.assert_allclose(z @ z.T, (x @ h) @ (x @ h).T, rtol=1e-9)
    np.testing.assert_allclose(found.out_of(z), x @ h @ h.T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.covariance(), vectors * e @ vectors.T, atol=1e-12)
    np.testing.assert_allclose(
        [found.variance, found.alpha, found.spread, found.gain],
        [v0, alpha, np.square(sd).sum(), np.sqrt(FEATURES / max(np.square(sd).sum(), 0.001 * FEATURES))],
        rtol=1e-9,
    )


def test_the_symmetric_root_is_symmetric() -> None:
    root = whiten(moments(50), symmetric=True).root
    np.testing.assert_allclose(root, root.T, atol=1e-14)


def test_switched_off_it_only_scales() -> None:
    found = whiten(moments(50), enabled=False)
    x = torch.randn(3, FEATURES, dtype=torch.float64)
    assert torch.equal(found.into(x), x) and torch.equal(found.out_of(x), x)
    assert found.spread == pytest.approx(FEATURES)


def test_rows_that_do_not_vary_have_a_whitening() -> None:
    found = whiten(Moments({"a": 3}, {"a": np.zeros(FEATURES)}, np.zeros((FEATURES, FEATURES)), 3, 2))
    assert bool(torch.isfinite(found.root).all()) and found.gain == pytest.approx(1000**0.5)


def test_triangular_products_and_inverse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triangular, "BLOCK", 4)
    lower = torch.tril(torch.randn(FEATURES, FEATURES, dtype=torch.float64)) + 5 * torch.eye(FEATURES)
    x = torch.randn(3, FEATURES, dtype=torch.float64)
    torch.testing.assert_close(times_lower(x, lower), x @ lower)
    torch.testing.assert_close(times_lower_transposed(x, lower), x @ lower.T)
    torch.testing.assert_close(inverse_lower(lower), torch.linalg.inv(lower))
