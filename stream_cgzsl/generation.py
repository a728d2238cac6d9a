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
    def _weights(self) -> Array:
        """The class vectors as the product wants them, [features, classes]."""
        vectors = self.vectors
        if self.metric == "cosine":
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return np.ascontiguousarray(vectors.T)

    def published(self, features: Array) -> Array:
        """[rows, features] -> the same in the published feature space: transformed and at length 1, float32."""
        x = np.array(features, dtype=np.float32, ndmin=2)  # a copy: the steps below work in place
        if self.transform == "sqrt":
            np.sqrt(np.maximum(x, 0, out=x), out=x)
        _normalise(x)
        return x

    def scores(self, features: Array) -> Array:
        """[rows, features] -> [rows, classes], float32. One matrix product."""
        x = self.published(features)
        if self.centre.any():
            x -= self.centre
            _normalise(x)
        product = x @ self._weights
        product += self.biases
        return product

    def classify(self, features: Array, k: int = 1) -> Ranking:
        """The k best classes (fewer when there are fewer) of each row of [rows, features]."""
        scores = self.scores(features)
        k = min(k, scores.shape[1])
        if k == 1:
            best = scores.argmax(axis=1)[:, None]
        elif k * 4 < scores.shape[1]:
            # argpartition alone would break ties at random: a stable sort of everything at least as good as the k-th
            best = _best(scores, k)
        else:
            best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return Ranking(best, np.take_along_axis(scores, best, axis=1))


def _normalise(x: Array) -> None:
    norms = np.sqrt(np.einsum("ij,ij->i", x, x))
    x /= np.maximum(norms, 1e-12)[:, None]


def _best(scores: Array, k: int) -> npt.NDArray[np.int64]:
    """The k best columns of each row, best first, equal scores by column."""
    candidates = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    threshold = np.take_along_axis(scores, candidates, axis=1).min(axis=1)
    tied = (scores >= threshold[:, None]).sum(axis=1) > k
    candidates.sort(axis=1)
    order = np.argsort(-np.take_along_axis(scores, candidates, axis=1), axis=1, kind="stable")
    best = np.take_along_axis(candidates, order, axis=1)
    for row in np.flatnonzero(tied):
        best[row] = np.argsort(-scores[row], kind="stable")[:k]
    return best
