"""A generation: what a window publishes, one immutable value that classifies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.encoder import Layer, LinearScoring, described, frozen
from stream_cgzsl.serving.scoring import BATCH_ROWS, Scoring

METRICS = ("cosine", "affine", "linear")
"""`cosine`: the class vector is used at length 1. `affine`: the class vector's length and a bias count too. `linear`:
so does the sample's length; it is not centred, and there may be an encoder (see `encoder.py`)."""

TRANSFORMS = ("none", "sqrt")
"""What is done to a feature before it is scaled to length 1: nothing, or the square root of each number."""


class Ranking(NamedTuple):
    """The k best classes of each row: indices into `Generation.class_ids`, and their scores, best first."""

    indices: npt.NDArray[np.int64]  # [rows, k]
    scores: npt.NDArray[np.float32]  # [rows, k]


@dataclass(frozen=True, eq=False)
class Generation:
    """Everything a scorer needs, as window `number` left it. Real numbers are float32; no array may be written to.

    Score of a sample x for class c: with t the transform, u = t(x)/|t(x)| and v = u - centre,
    `affine`: v/|v| . vectors[c] + biases[c]; `cosine`: the same with vectors[c]/|vectors[c]|.
    Equal scores are broken by the order of `class_ids`, which is sorted.
    `calibration` says how the seen/unseen balance was found (numbers and short texts, JSON-ready); it is already
    inside `biases`. A generation that is not `servable` knows its classes but cannot tell them apart yet. `examples` is
    how many each class has had; None if that is not known, as of generations published before it was recorded.
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
    examples: npt.NDArray[np.int64] | None = None  # [classes]
    delta: Delta | None = None  # how it was made from the generation before; None where it stands alone
    encoder: tuple[Layer, ...] | None = None  # vectors and centre then have the length of what it makes

    def __post_init__(self) -> None:
        classes, features = self.vectors.shape
        if not (len(self.class_ids) == len(self.seen) == len(self.biases) == classes and len(self.centre) == features):
            raise ValueError("class ids, seen flags, vectors, biases and centre do not fit together")
        if self.examples is not None and self.examples.shape != (classes,):
            raise ValueError("there must be one number of examples per class")
        if list(self.class_ids) != sorted(set(self.class_ids)):
            raise ValueError("class ids must be sorted and distinct")
        if self.metric not in METRICS or self.transform not in TRANSFORMS:
            raise ValueError(f"unknown metric {self.metric!r} or transform {self.transform!r}")
        if self.metric != "linear" and self.encoder is not None:
            raise ValueError("only the metric `linear` has an encoder")
        if self.encoder is not None:
            object.__setattr__(self, "encoder", frozen(self.encoder, features))
        for name, dtype in (("vectors", "<f4"), ("biases", "<f4"), ("centre", "<f4"), ("examples", "<i8")):
            if getattr(self, name) is None:
                continue
            array = np.ascontiguousarray(getattr(self, name), dtype=dtype)
            if array.flags.writeable:
                array = array.view()
                array.flags.writeable = False
            object.__setattr__(self, name, array)

    def after(self, delta: Delta) -> Generation:
        """The generation that `delta` makes of this one. Raises `ValueError` where it builds on another."""
        if delta.base != self.number:
            raise ValueError(f"the delta builds on generation {delta.base}, and this is generation {self.number}")
        gone = {*delta.class_ids, *delta.withdrawn}
        kept = [index for index, class_id in enumerate(self.class_ids) if class_id not in gone]
        ids = [*(self.class_ids[index] for index in kept), *delta.class_ids]
        order = sorted(range(len(ids)), key=ids.__getitem__)

        def merged(old: npt.NDArray[Any], new: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return np.concatenate([old[kept], new])[order]

        examples = None
        if self.examples is not None and delta.examples is not None:
            examples = merged(self.examples, delta.examples)
        return replace(
            self,
            number=delta.number,
            class_ids=tuple(ids[index] for index in order),
            seen=merged(self.seen, delta.seen),
            vectors=merged(self.vectors, delta.vectors),
            biases=merged(self.biases, delta.biases),
            examples=examples,
            delta=delta,
        )

    @cached_property
    def digest(self) -> str:
        """sha256 over everything above but `examples` and `delta`. Equal digests: equal answers to every sample."""
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
        layers = self.encoder or ()
        if layers:
            head["encoder"] = described(layers)
        digest = hashlib.sha256(json.dumps(head, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())
        encoder = [array for layer in layers for array in layer[:2]]
        for array in (self.vectors, self.biases, self.centre, *encoder):
            digest.update(array.data)
        return digest.hexdigest()

    @property
    def scoring_vectors(self) -> Array:
        """[classes, features]: the vectors that scores are products with, at length 1 if the metric says so."""
        return unit(self.vectors) if self.metric == "cosine" else self.vectors

    @cached_property
    def _scoring(self) -> Scoring | LinearScoring:
        if self.metric == "linear":
            return LinearScoring(self.vectors, self.biases, self.encoder or (), self.transform)
        return Scoring(self.scoring_vectors, self.biases, self.centre, self.transform)

    def prepare(self) -> None:
        """Computes what the first answer would otherwise wait for."""
        _ = self._scoring

    def published(self, features: Array) -> Array:
        """[rows, features] as they come -> the published feature space: transformed, at length 1, float32."""
        x = _rows(features)
        return unit(np.sqrt(np.maximum(x, 0)) if self.transform == "sqrt" else x)

    def scores(self, features: Array) -> Array:
        """[rows, features] -> [rows, classes], float32. One matrix product, and little more than that."""
        x = _rows(features)
        found = np.empty((len(x), len(self.class_ids)), np.float32)
        for first in range(0, len(x), BATCH_ROWS):
            last = first + BATCH_ROWS
            self._scoring.score(x[first:last], found[first:last])
        return found

    def classify(self, features: Array, k: int = 1) -> Ranking:
        """The k best classes (fewer when there are fewer) of each row of [rows, features]."""
        x = _rows(features)
        if len(x) <= BATCH_ROWS:
            return best(self._scoring.scores(x), k)
        parts = [self.classify(x[i : i + BATCH_ROWS], k) for i in range(0, len(x), BATCH_ROWS)]
        return Ranking(np.concatenate([p.indices for p in parts]), np.concatenate([p.scores for p in parts]))


def unit(rows: Array) -> Array:
    """Rows at length 1; a row of zeros stays zero."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


def _rows(features: Array) -> Array:
    return np.atleast_2d(np.asarray(features, dtype=np.float32))


_SORT_ABOVE = 16
"""For more than this many best classes, sorting is faster than searching for one maximum after the other."""


def best(scores: Array, k: int) -> Ranking:
    """The k highest columns of each row, highest first, equal ones in column order. Overwrites `scores`."""
    rows, columns = scores.shape
    k = min(k, columns)
    if k > _SORT_ABOVE:
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
