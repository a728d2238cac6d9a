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


class Product:
    """v/|v| . w + bias for every class, with t = transform(x), u = t/|t| and v = u - centre.

    Samples are never centred: v.w = t.w/|t| - centre.w and |v|^2 = |u|^2 - 2 t.centre/|t| + |centre|^2, so the centre is one
    more column of the product. Any number of threads may use one.
    """

    def __init__(self, vectors: Array, biases: Array, centre: Array, transform: str) -> None:
        self._rooted = transform == "sqrt"
        self._centred = bool(centre.any())
        self._columns = np.ascontiguousarray(np.vstack([vectors, centre]).T if self._centred else vectors.T)
        self._shift = (vectors.astype(np.float64) @ centre).astype(np.float32)  # centre.w
        self._biases = biases
        self._centre = centre
        self._ones = np.ones(len(centre), np.float32)
        self._scratch = threading.local()  # fresh memory for every batch would cost as much as the product

    def score(self, x: Array, found: Array) -> None:
        """x [rows, features] -> found [rows, classes], both float32, at most `ROWS_AT_ONCE` rows."""
        with np.errstate(invalid="ignore", over="ignore"):
            self._score(x, found)
        if not np.isfinite(found).all():  # negative numbers under a root, or some too large to be squared
            x = np.maximum(x, 0) if self._rooted else x
            self._score(x / np.maximum(np.abs(x).max(axis=1, keepdims=True), 1), found)

    def _score(self, x: Array, found: Array) -> None:
        if self._rooted:
            squares = np.dot(x, self._ones)  # of the roots
            x = np.sqrt(x, out=self._room(len(x)))
        else:
            squares = np.einsum("ij,ij->i", x, x)
        products = np.dot(x, self._columns)
        scale = 1 / np.sqrt(np.maximum(squares, _TINY))  # [rows]
        if not self._centred:
            np.multiply(products, scale[:, None], out=found)
            found += self._biases
            return
        towards = products[:, -1] * scale
        distances = (squares > _TINY) - 2 * towards + self._centre @ self._centre  # squared, from the centre
        closer = 1 / np.sqrt(np.maximum(distances, _TINY))
        np.multiply(products[:, :-1], (scale * closer)[:, None], out=found)
        found -= closer[:, None] * self._shift
        found += self._biases
        near = np.flatnonzero(distances < _NEAR)
        if near.size:
            v = x[near] * scale[near, None] - self._centre
            v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-12)
            found[near] = v @ self._columns[:, :-1] + self._biases

    def _room(self, rows: int) -> Array:
        if not hasattr(self._scratch, "room"):
            self._scratch.room = np.empty((ROWS_AT_ONCE, len(self._centre)), np.float32)
        room: Array = self._scratch.room[:rows]
        return room
