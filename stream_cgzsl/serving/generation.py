"""A generation: what a window publishes, one immutable value that classifies."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.blocks import Block, Blocks, all_ids, changed, joined_vectors, split, unit
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
    incremental: bool = False
    delta: Delta | None = None
    base: int | None = None
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

    @cached_property
    def blocks(self) -> Blocks:
        return split(Block(self.class_ids, self.seen, self.vectors, self.biases, self.examples))

    def after(self, delta: Delta) -> Generation:
        """The generation that `delta` makes of this one, with whose blocks it shares all that stays."""
        if not self.incremental or delta.number <= self.number:
            raise ValueError(f"generation {delta.number} cannot be made from generation {self.number} by a delta")
        blocks = changed(self.blocks, delta)
        made = object.__new__(Generation)
        made.__dict__.update(
            {field.name: getattr(self, field.name) for field in fields(self) if field.name != "vectors"},
            number=delta.number,
            class_ids=tuple(all_ids(blocks)),
            seen=np.concatenate([np.zeros(0, bool), *(block.seen for block in blocks)]),
            biases=np.concatenate([np.zeros(0, "<f4"), *(block.biases for block in blocks)]),
            examples=None
            if self.examples is None
            else np.concatenate([np.zeros(0, "<i8"), *(b.examples for b in blocks if b.examples is not None)]),
            delta=delta,
            base=self.number,
            blocks=blocks,
        )
        return made

    def rows_of(self, class_ids: Sequence[str]) -> dict[str, Array]:
        """The vectors of these classes, those that there are, by id."""
        firsts = [block.class_ids[0] for block in self.blocks]
        found: dict[str, Array] = {}
        for class_id in class_ids:
            block = self.blocks[max(0, bisect_right(firsts, class_id) - 1)] if firsts else None
            place = 0 if block is None else bisect_left(block.class_ids, class_id)
            if block is not None and place < len(block.class_ids) and block.class_ids[place] == class_id:
                found[class_id] = block.vectors[place]
        return found

    @property
    def features(self) -> int:
        """The length of a sample."""
        return len(self.centre) if self.encoder is None else self.encoder[0].weights.shape[1]

    @cached_property
    def digest(self) -> str:
        """sha256 over everything above but `examples` and `delta`. Equal digests: equal answers to every sample.

        Of an incremental generation it combines digests of rows, so that a delta need not read everything again.
        """
        head: dict[str, Any] = {
            "number": self.number,
            "metric": self.metric,
            "transform": self.transform,
            "servable": self.servable,
            "calibration": dict(self.calibration),
        }
        layers = self.encoder or ()
        if layers:
            head["encoder"] = described(layers)
        if self.incremental:
            parts = [self.centre.data, *(block.digests.data for block in self.blocks)]
        else:
            head["class_ids"] = self.class_ids
            head["seen"] = [bool(flag) for flag in self.seen]
            head["shape"] = self.vectors.shape
            parts = [self.vectors.data, self.biases.data, self.centre.data]
        digest = hashlib.sha256(json.dumps(head, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())
        for part in (*parts, *(array.data for layer in layers for array in layer[:2])):
            digest.update(part)
        return digest.hexdigest()

    @property
    def scoring_vectors(self) -> Array:
        """[classes, features]: the vectors that scores are products with, at length 1 if the metric says so."""
        return unit(self.vectors) if self.metric == "cosine" else self.vectors

    @cached_property
    def _scorings(self) -> Sequence[Scoring | LinearScoring]:
        if self.metric == "linear":
            return [LinearScoring(self.vectors, self.biases, self.encoder or (), self.transform)]
        return [block.scoring(self.metric, self.centre, self.transform) for block in self.blocks]

    def prepare(self) -> None:
        """Computes what the first answer would otherwise wait for; of a delta, only what it changed."""
        _ = self._scorings

    def published(self, features: Array) -> Array:
        """[rows, features] as they come -> the published feature space: transformed, at length 1, float32."""
        x = _rows(features)
        return unit(np.sqrt(np.maximum(x, 0)) if self.transform == "sqrt" else x)

    def scores(self, features: Array) -> Array:
        """[rows, features] -> [rows, classes], float32. One matrix product a block, and little more than that."""
        x = _rows(features)
        found = np.empty((len(x), len(self.class_ids)), np.float32)
        for first in range(0, len(x), BATCH_ROWS):
            rows = slice(first, first + BATCH_ROWS)
            column = 0
            for scoring in self._scorings:
                scoring.score(x[rows], found[rows, column : column + scoring.classes])
                column += scoring.classes
        return found

    def classify(self, features: Array, k: int = 1) -> Ranking:
        """The k best classes (fewer when there are fewer) of each row of [rows, features]."""
        x = _rows(features)
        if len(x) > BATCH_ROWS:
            parts = [self.classify(x[i : i + BATCH_ROWS], k) for i in range(0, len(x), BATCH_ROWS)]
            return Ranking(np.concatenate([p.indices for p in parts]), np.concatenate([p.scores for p in parts]))
        if not self._scorings:
            return best(np.empty((len(x), 0), np.float32), k)
        ranking = best(self._scorings[0].scores(x), k)
        column = self._scorings[0].classes
        for scoring in self._scorings[1:]:
            ranking = better(ranking, scoring.scores(x), column, min(k, len(self.class_ids)))
            column += scoring.classes
        return ranking


_vectors = cached_property(lambda generation: joined_vectors(generation.blocks, len(generation.centre)))
_vectors.__set_name__(Generation, "vectors")
Generation.vectors = _vectors  # type: ignore[assignment]
"""A generation that a delta made has blocks, and one array of all vectors only when it is asked for."""


def following(before: Generation | None, made: Generation | Delta) -> Generation:
    """The generation that a learner made, given the one it made before."""
    if isinstance(made, Generation):
        return made
    assert before is not None
    return before.after(made)


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


def better(ranking: Ranking, scores: Array, first: int, k: int) -> Ranking:
    """The k best of a ranking and of more classes, whose columns start at `first`, after those of the ranking."""
    if ranking.scores.shape[1] == k:
        rows = np.flatnonzero(scores.max(axis=1) > ranking.scores[:, -1])  # equal scores go to the first class
        if not len(rows):
            return ranking
    else:
        rows = np.arange(len(scores))
    more = best(scores[rows], k)
    indices = np.concatenate([ranking.indices[rows], more.indices + first], axis=1)
    values = np.concatenate([ranking.scores[rows], more.scores], axis=1)
    order = np.argsort(-values, axis=1, kind="stable")[:, :k]
    taken = Ranking(np.take_along_axis(indices, order, axis=1), np.take_along_axis(values, order, axis=1))
    if len(rows) == len(scores):
        return taken
    ranking.indices[rows], ranking.scores[rows] = taken
    return ranking
