"""Scores that are linear in a feature, or in what an encoder makes of it: the metric `linear`, without torch.

With t the transform, the score for class c is e(t(x)) . vectors[c] + biases[c], where e is the encoder, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stream_cgzsl.schemas import Array

ACTIVATIONS = ("linear", "relu")

MOST = np.float32(1e18)
"""Larger numbers of a sample count as this, so that its scores stay finite."""


class Layer(NamedTuple):
    """y = activation(weights x + bias)"""

    weights: Array  # [outputs, inputs]
    bias: Array  # [outputs]
    activation: str = "linear"


def frozen(layers: Iterable[Layer], latent: int) -> tuple[Layer, ...]:
    """The layers as float32 that nobody may write to. Raises `ValueError` where they do not fit together."""
    kept: list[Layer] = []
    for weights, bias, activation in layers:
        weights, bias = (np.array(array, "<f4", order="C") for array in (weights, bias))
        fits = weights.ndim == 2 and bias.shape == weights.shape[:1]
        if not fits or (kept and weights.shape[1] != len(kept[-1].bias)) or activation not in ACTIVATIONS:
            raise ValueError("the layers of the encoder do not fit together")
        weights.flags.writeable = bias.flags.writeable = False
        kept.append(Layer(weights, bias, activation))
    if not kept or len(kept[-1].bias) != latent:
        raise ValueError("the encoder does not end where the vectors begin")
    return tuple(kept)


def described(layers: Sequence[Layer]) -> list[Any]:
    """What a digest covers besides the arrays."""
    return [[*layer.weights.shape, layer.activation] for layer in layers]


def to_bytes(layers: Sequence[Layer]) -> bytes:
    """The numbers of all layers, in order: weights, then bias."""
    return b"".join(array.tobytes() for layer in layers for array in layer[:2])


def from_bytes(data: bytes, shapes: Iterable[tuple[int, int, str]]) -> tuple[Layer, ...]:
    """Layers of these outputs, inputs and activations. Raises `ValueError` where the data does not fit."""
    numbers, layers = np.frombuffer(data, "<f4"), []
    for outputs, inputs, activation in shapes:
        weights, bias, numbers = np.split(numbers, [outputs * inputs, outputs * inputs + outputs])
        layers.append(Layer(weights.reshape(outputs, inputs), bias, activation))
    if len(numbers):
        raise ValueError("there are more numbers than the layers of the encoder have")
    return tuple(layers)


def encoded(x: Array, layers: Sequence[Layer]) -> Array:
    """[rows, features] -> [rows, latent]"""
    for weights, bias, activation in layers:
        x = x @ weights.T + bias
        if activation == "relu":
            x = np.maximum(x, 0, out=x)
    return x


class LinearScoring:
    """As `scoring.Scoring`, for the metric `linear`. May be used by any number of threads."""

    def __init__(self, vectors: Array, biases: Array, layers: Sequence[Layer], transform: str) -> None:
        self.classes = len(vectors)
        self._vectors, self._biases, self._layers = vectors, biases, layers
        self._rooted = transform == "sqrt"

    def score(self, x: Array, found: Array) -> None:
        """x [rows, features] -> found [rows, classes], both float32."""
        x = np.clip(x, 0 if self._rooted else -MOST, MOST)
        x = encoded(np.sqrt(x, out=x) if self._rooted else x, self._layers)
        np.dot(x, self._vectors.T, out=found)
        found += self._biases

    def scores(self, x: Array) -> Array:
        """As `score`, in new memory."""
        found = np.empty((len(x), len(self._vectors)), np.float32)
        self.score(x, found)
        return found
