"""The scores of a batch of samples for every class: one matrix product, and as little as possible besides."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ROWS_AT_ONCE = 256
"""Rows that are worked on together: what is made of them stays in the processor's cache."""

_ROWS_IN_CACHE = 64
"""Rows whose roots are taken and whose numbers are summed before they leave the nearest cache."""

_NEAR = 1e-3
"""Samples that stand so close to the centre (squared distance) are measured number by number: differences of large
products would say little about them."""

_TINY = 1e-24

_COLUMNS_AT_ONCE = 4
"""A product with so many columns more takes less time than one with a rest of them."""


class Product:
    """v/|v| . w + bias for every class, with t = transform(x), u = t/|t| and v = u - centre.

    Samples are never centred: v.w = t.w/|t| - centre.w and |v|^2 = |u|^2 - 2 t.centre/|t| + |centre|^2, so the centre is one
    more column of the product. Any number of threads may use one.
    """

    def __init__(self, vectors: Array, biases: Array, centre: Array, transform: str) -> None:
        self._rooted = transform == "sqrt"
        self._centred = bool(centre.any())
        self._classes = len(vectors)
        more = [centre] if self._centred else []
        more += [np.zeros_like(centre)] * (-(len(vectors) + len(more)) % _COLUMNS_AT_ONCE)
        self._columns = np.ascontiguousarray(np.vstack([vectors, *more]).T)
        self._shift = (vectors.astype(np.float64) @ centre).astype(np.float32)  # centre.w
        self._biases = biases
        self._centre = centre
        self._length = np.float32(centre @ centre)
        self._ones = np.ones(len(centre), np.float32)
        self._scratch = threading.local()

    def score(self, x: Array, found: Array) -> None:
        """x [rows, features] -> found [rows, classes], both float32, at most `ROWS_AT_ONCE` rows."""
        with np.errstate(invalid="ignore", over="ignore"):
            self._score(x, found)
            whole = np.isfinite(found.sum())
        if not whole:  # negative numbers under a root, or some too large to be squared
            x = np.maximum(x, 0) if self._rooted else x
            self._score(x / np.maximum(np.abs(x).max(axis=1, keepdims=True), 1), found)

    def _score(self, x: Array, found: Array) -> None:
        if self._rooted:
            x, squares = self._roots(x)
        else:
            squares = np.einsum("ij,ij->i", x, x)
        products = np.dot(x, self._columns, out=self._space("products", self._columns.shape[1])[: len(x)])
        scale = _inverse_root(squares)  # [rows]
        if not self._centred:
            np.multiply(products[:, : self._classes], scale[:, None], out=found)
            found += self._biases
            return
        distances = products[:, self._classes] * scale
        distances *= -2
        distances += self._length  # of the centre, squared
        distances += squares > _TINY  # now from the centre, squared
        closer = _inverse_root(distances)
        scale *= closer
        np.multiply(products[:, : self._classes], scale[:, None], out=found)
        products = np.multiply(closer[:, None], self._shift, out=products[:, : self._classes])
        found -= products
        found += self._biases
        if distances.min(initial=_NEAR) >= _NEAR:
            return
        scale /= closer
        near = np.flatnonzero(distances < _NEAR)
        v = x[near] * scale[near, None] - self._centre
        v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-12)
        found[near] = v @ self._columns[:, : self._classes] + self._biases

    def _roots(self, x: Array) -> tuple[Array, Array]:
        """The roots of all numbers, and the sum of their squares in each row, while the row is in the nearest cache."""
        roots, squares = self._space("roots", len(self._centre))[: len(x)], np.empty(len(x), np.float32)
        for first in range(0, len(x), _ROWS_IN_CACHE):
            some = slice(first, first + _ROWS_IN_CACHE)
            np.sqrt(x[some], out=roots[some])
            np.dot(x[some], self._ones, out=squares[some])
        return roots, squares

    def scores(self, x: Array) -> Array:
        """As `score`, in memory that this thread's next call takes again."""
        found = self._space("scores", self._classes)[: len(x)]
        self.score(x, found)
        return found

    def _space(self, name: str, columns: int) -> Array:
        """[ROWS_AT_ONCE, columns], the same memory each time: fresh one for every batch would cost half the product."""
        space: Array | None = getattr(self._scratch, name, None)
        if space is None:
            space = np.empty((ROWS_AT_ONCE, columns), np.float32)
            setattr(self._scratch, name, space)
        return space


def _inverse_root(squares: Array) -> Array:
    found = np.maximum(squares, np.float32(_TINY))
    np.sqrt(found, out=found)
    return np.reciprocal(found, out=found)
