"""What is published: one immutable value that classifies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stream_cgzsl.product import ROWS_AT_ONCE, Product

Array = npt.NDArray[Any]

METRICS = ("cosine", "affine")
"""`cosine`: the class vector is used at length 1. `affine`: the class vector's length and a bias count too."""

TRANSFORMS = ("none", "sqrt")
"""What is done to a feature before it is scaled to length 1: nothing, or the square root of each (non-negative) number."""


class Ranking(NamedTuple):
    """The k best classes of each row: indices into `Generation.class_ids`, and their scores, best first."""

    indices: npt.NDArray[np.int64]  # [rows, k]
    scores: npt.NDArray[np.float32]  # [rows, k]


@dataclass(frozen=True, eq=False)
class Generation:
    """Everything a scorer needs, as window `number` left it. Arrays are float32 and must not be written to.

    Score of a sample x for class c: with t the transform, u = t(x)/|t(x)| and v = u - centre,
    `affine`: v/|v| . vectors[c] + biases[c]; `cosine`: the same with vectors[c]/|vectors[c]|.
    Equal scores are broken by the order of `class_ids`, which is sorted.
    `calibration` says how the seen/unseen balance was found (numbers and short texts, JSON-ready); it is already
    inside `biases`. A generation that is not `servable` knows its classes but cannot tell them apart yet.
    """

    number: int
    class_ids: tuple[str, ...]
    seen: npt.NDArray[np.bool_]  # [classes]
    vectors: Array  # [classes, features]
    biases: Array  # [classes]
    centre: Array  # [features]
    metric: str = "affine"
    transform: str = "none"
    servable: bool = True
    calibration: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        classes, features = self.vectors.shape
        if not (len(self.class_ids) == len(self.seen) == len(self.biases) == classes and len(self.centre) == features):
            raise ValueError("class ids, seen flags, vectors, biases and centre do not fit together")
        if list(self.class_ids) != sorted(set(self.class_ids)):
            raise ValueError("class ids must be sorted and distinct")
        if self.metric not in METRICS or self.transform not in TRANSFORMS:
            raise ValueError(f"unknown metric {self.metric!r} or transform {self.transform!r}")
        for name in ("vectors", "biases", "centre"):
            array = np.ascontiguousarray(getattr(self, name), dtype="<f4")
            if array.flags.writeable:
                array = array.view()
                array.flags.writeable = False
            object.__setattr__(self, name, array)

    @cached_property
    def digest(self) -> str:
        """sha256 over everything above. Equal digests: equal answers to every sample."""
        head = {
            "number": self.number,
            "class_ids": self.class_ids,
            "seen": [bool(flag) for flag in self.seen],
            "shape": self.vectors.shape,
            "metric": self.metric,
            "transform": self.transform,
            "servable": self.servable,
            "calibration": dict(self.calibration),
        }
        digest = hashlib.sha256(json.dumps(head, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())
        for array in (self.vectors, self.biases, self.centre):
            digest.update(array.data)
        return digest.hexdigest()

    @cached_property
    def _product(self) -> Product:
        vectors = self.vectors
        if self.metric == "cosine":
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return Product(vectors, self.biases, self.centre, self.transform)

    def prepare(self) -> None:
        """Makes what the first answer would otherwise wait for."""
        _ = self._product

    def scores(self, features: Array) -> Array:
        """[rows, features] -> [rows, classes], float32. One matrix product, and little more than that."""
        x = _rows(features)
        found = np.empty((len(x), len(self.class_ids)), np.float32)
        for first in range(0, len(x), ROWS_AT_ONCE):
            last = first + ROWS_AT_ONCE
            self._product.score(x[first:last], found[first:last])
        return found

    def classify(self, features: Array, k: int = 1) -> Ranking:
        """The k best classes (fewer when there are fewer) of each row of [rows, features]."""
        x = _rows(features)
        if len(x) <= ROWS_AT_ONCE:
            return best(self._product.scores(x), k)
        parts = [self.classify(x[i : i + ROWS_AT_ONCE], k) for i in range(0, len(x), ROWS_AT_ONCE)]
        return Ranking(np.concatenate([p.indices for p in parts]), np.concatenate([p.scores for p in parts]))


def _rows(features: Array) -> Array:
    return np.atleast_2d(np.asarray(features, dtype=np.float32))


_FEW = 16


def best(scores: Array, k: int) -> Ranking:
    """The k highest columns of each row, highest first, equal ones in column order. `scores` is used up."""
    rows, columns = scores.shape
    k = min(k, columns)
    if k > _FEW:
        indices = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return Ranking(indices, np.take_along_axis(scores, indices, axis=1))
    flat, starts = scores.reshape(-1), np.arange(rows) * columns
    found = np.empty((k, rows), np.int64)
    values = np.empty((k, rows), np.float32)
    for places, highest in zip(found, values, strict=True):
        scores.argmax(axis=1, out=places)
        places += starts
        flat.take(places, out=highest, mode="clip")
        flat[places] = -np.inf
        places -= starts
    return Ranking(found.T, values.T)
