"""The scores of a batch of samples for every class: one matrix product, and as little as possible besides."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ROWS_AT_ONCE = 256
"""Rows that are worked on together: what is made of them stays in the processor's cache."""

_NEAR = 1e-3
"""Samples that stand so close to the centre (squared distance) are measured number by number: differences of large
products would say little about them."""

_TINY = 1e-24

_LARGE_PAGE = 2**21

_COLUMNS_AT_ONCE = 4
"""A product with so many columns more takes less time than one with a rest of them."""


class Product:
    """v/|v| . w + bias for every class, with t = transform(x), u = t/|t| and v = u - centre.

    Samples are never centred: v.w = t.w/|t| - centre.w and |v|^2 = |u|^2 - 2 t.centre/|t| + |centre|^2, so -2 centre is one
    more column of the product. Any number of threads may use one.
    """

    def __init__(self, vectors: Array, biases: Array, centre: Array, transform: str) -> None:
        self._rooted = transform == "sqrt"
        self._centred = bool(centre.any())
        self._classes = len(vectors)
        more = [-2 * centre] if self._centred else []
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
            said = self._score(x, found)
        if not said:
            x = np.maximum(x, 0) if self._rooted else x
            self._score(x / np.maximum(np.abs(x).max(axis=1, keepdims=True), 1), found)

    def _score(self, x: Array, found: Array) -> bool:
        """False where `found` says nothing: numbers were negative under a root, or too large to be squared and summed."""
        if self._rooted:
            roots = np.sqrt(x, out=self._space("roots", len(self._centre))[: len(x)])
            squares = np.dot(x, self._ones)
            x = roots
        else:
            squares = np.einsum("ij,ij->i", x, x)
        products = np.dot(x, self._columns, out=self._space("products", self._columns.shape[1])[: len(x)])
        scale = _inverse_root(squares)  # [rows]
        if not self._centred:
            np.multiply(products[:, : self._classes], scale[:, None], out=found)
            found += self._biases
            return bool(np.isfinite(squares.sum() + products[:, :1].sum()))
        distances = squares * scale
        distances += products[:, self._classes]
        distances *= scale
        distances += self._length  # |u|^2 - 2 u.centre + |centre|^2
        closer = _inverse_root(distances)
        scale *= closer
        np.multiply(products[:, : self._classes], scale[:, None], out=found)
        products = np.multiply(closer[:, None], self._shift, out=products[:, : self._classes])
        found -= products
        found += self._biases
        least = distances.min(initial=_NEAR)
        if least < _NEAR:
            self._measure(x, np.flatnonzero(distances < _NEAR), squares, found)
        return bool(least == least)  # it is not, where anything is not a number

    def _measure(self, x: Array, near: Array, squares: Array, found: Array) -> None:
        """The scores of rows near the centre, number by number."""
        v = x[near] * _inverse_root(squares[near])[:, None] - self._centre
        v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-12)
        found[near] = v @ self._columns[:, : self._classes] + self._biases

    def scores(self, x: Array) -> Array:
        """As `score`, in memory that this thread's next call takes again."""
        found = self._space("scores", self._classes)[: len(x)]
        self.score(x, found)
        return found

    def _space(self, name: str, columns: int) -> Array:
        """[ROWS_AT_ONCE, columns], the same memory each time: fresh one for every batch would cost half the product."""
        space: Array | None = getattr(self._scratch, name, None)
        if space is None:
            space = _empty(ROWS_AT_ONCE * columns).reshape(ROWS_AT_ONCE, columns)
            setattr(self._scratch, name, space)
        return space


def _empty(numbers: int) -> Array:
    """Memory for float32 numbers. What fills a page of 2 MB begins with one: numpy asks the system for such pages where it
    has them, and they gain a twentieth of the product.
    """
    if numbers * 4 < _LARGE_PAGE:
        return np.empty(numbers, np.float32)
    room = np.empty(numbers + _LARGE_PAGE // 4, np.float32)
    first = -room.ctypes.data % _LARGE_PAGE // 4
    return room[first : first + numbers]


def _inverse_root(squares: Array) -> Array:
    found = np.maximum(squares, np.float32(_TINY))
    np.sqrt(found, out=found)
    return np.reciprocal(found, out=found)
