"""The scores of a batch of samples for every class: one matrix product, and as little as possible besides.

This is the scoring formula for the CPU, without torch; `cuda.py` has the same in torch, and a test compares the two.
"""

from __future__ import annotations

import threading

import numpy as np

from stream_cgzsl.schemas import Array

BATCH_ROWS = 256
"""Rows that are scored together: intermediate results then stay in the processor's cache."""

_NEAR = 1e-3
"""Samples this close to the centre (squared distance) are scored by explicit subtraction: differences of large products
would cancel."""

_TINY = 1e-24

_LARGE_PAGE = 2**21

_COLUMN_MULTIPLE = 4
"""Matrix products with a multiple of this many columns are faster than those with a remainder."""


class Scoring:
    """v/|v| . w + bias for every class, with t = transform(x), u = t/|t| and v = u - centre.

    Samples are never centred: v.w = t.w/|t| - centre.w and |v|^2 = |u|^2 - 2 t.centre/|t| + |centre|^2, so -2 centre is
    one more column of the product. May be used by any number of threads.
    """

    def __init__(self, vectors: Array, biases: Array, centre: Array, transform: str) -> None:
        self._rooted = transform == "sqrt"
        self._centred = bool(centre.any())
        self.classes = len(vectors)
        more = [-2 * centre] if self._centred else []
        more += [np.zeros_like(centre)] * (-(len(vectors) + len(more)) % _COLUMN_MULTIPLE)
        self._columns = np.ascontiguousarray(np.vstack([vectors, *more]).T)
        self._shift = (vectors.astype(np.float64) @ centre).astype(np.float32)  # centre.w
        self._biases = biases
        self._centre = centre
        self._length = np.float32(centre @ centre)
        self._ones = np.ones(len(centre), np.float32)

    def score(self, x: Array, found: Array) -> None:
        """x [rows, features] -> found [rows, classes], both float32, at most `BATCH_ROWS` rows."""
        with np.errstate(invalid="ignore", over="ignore"):
            valid = self._score(x, found)
        if not valid:
            x = np.maximum(x, 0) if self._rooted else x
            self._score(x / np.maximum(np.abs(x).max(axis=1, keepdims=True), 1), found)

    def _score(self, x: Array, found: Array) -> bool:
        """False where `found` is not valid: numbers were negative under a root, or too large to be squared."""
        if self._rooted:
            roots = np.sqrt(x, out=_space("roots", len(self._centre))[: len(x)])
            squares = np.dot(x, self._ones)
            x = roots
        else:
            squares = np.einsum("ij,ij->i", x, x)
        products = np.dot(x, self._columns, out=_space("products", self._columns.shape[1])[: len(x)])
        scale = _inverse_root(squares)  # [rows]
        if not self._centred:
            np.multiply(products[:, : self.classes], scale[:, None], out=found)
            found += self._biases
            return bool(np.isfinite(squares.sum() + products[:, :1].sum()))
        distances = squares * scale
        distances += products[:, self.classes]
        distances *= scale
        distances += self._length  # |u|^2 - 2 u.centre + |centre|^2
        closer = _inverse_root(distances)
        scale *= closer
        np.multiply(products[:, : self.classes], scale[:, None], out=found)
        products = np.multiply(closer[:, None], self._shift, out=products[:, : self.classes])
        found -= products
        found += self._biases
        least = distances.min(initial=_NEAR)
        if least < _NEAR:
            self._score_near(x, np.flatnonzero(distances < _NEAR), squares, found)
        return not np.isnan(least)

    def _score_near(self, x: Array, near: Array, squares: Array, found: Array) -> None:
        """The scores of rows near the centre, by subtraction."""
        v = x[near] * _inverse_root(squares[near])[:, None] - self._centre
        v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-12)
        found[near] = v @ self._columns[:, : self.classes] + self._biases

    def scores(self, x: Array) -> Array:
        """As `score`, in memory that this thread's next call overwrites."""
        found = _space("scores", self.classes)[: len(x)]
        self.score(x, found)
        return found


_scratch = threading.local()


def _space(name: str, columns: int) -> Array:
    """[BATCH_ROWS, columns], the same memory each time: allocating per batch would cost half of the product."""
    space: Array | None = getattr(_scratch, name, None)
    if space is None or space.size < BATCH_ROWS * columns:
        space = _empty(BATCH_ROWS * columns)
        setattr(_scratch, name, space)
    return space[: BATCH_ROWS * columns].reshape(BATCH_ROWS, columns)


def _empty(numbers: int) -> Array:
    """Memory for float32 numbers, aligned to huge pages (2 MB) where it is large: that makes the product 5 % faster."""
    if numbers * 4 < _LARGE_PAGE:
        return np.empty(numbers, np.float32)
    room = np.empty(numbers + _LARGE_PAGE // 4, np.float32)
    first = -room.ctypes.data % _LARGE_PAGE // 4
    return room[first : first + numbers]


def _inverse_root(squares: Array) -> Array:
    found = np.maximum(squares, np.float32(_TINY))
    np.sqrt(found, out=found)
    return np.reciprocal(found, out=found)
