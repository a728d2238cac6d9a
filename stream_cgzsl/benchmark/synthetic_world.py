"""Synthetic classes with semantic structure: invented animals, any number of them, reproducible from a seed.

A class is a combination of traits ("striped river cat"). Each trait shifts many attributes at once, so attributes are
correlated. The mean feature of a class is a smooth function of its attributes plus a class-specific part that the
attributes do not explain; features scatter around it along shared directions, so neighbouring classes overlap.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from stream_cgzsl.schemas import Array

_COATS = ("striped", "spotted", "plain", "crested", "golden", "dusky", "ringed", "scarlet")
_PLACES = ("river", "forest", "desert", "reef", "tundra", "marsh", "canyon", "steppe")
_BODIES = ("cat", "owl", "otter", "lizard", "crab", "fox", "heron", "moth")

TRAIN, TEST = 1, 2
"""The purposes that features are drawn for: other purposes, other features."""


class World:
    """`classes` animals; `attributes` and `features` are the lengths of their vectors. Features are not negative."""

    def __init__(self, classes: int = 24, attributes: int = 32, features: int = 128, seed: int = 7) -> None:
        kinds: list[tuple[str, ...]] = list(itertools.product(_COATS, _PLACES, _BODIES))
        if classes < 1:
            raise ValueError(f"expected at least 1 class, not {classes}")
        varieties = tuple(f"variety-{number}" for number in range(2, math.ceil(classes / len(kinds)) + 1))
        kinds += [(*kind, variety) for variety in varieties for kind in kinds]  # for more than 512 classes
        rng = np.random.default_rng([seed, 0])
        chosen = [kinds[i] for i in rng.permutation(len(kinds))[:classes]]
        self.classes = tuple("-".join(kind) for kind in chosen)
        self._index = {name: number for number, name in enumerate(self.classes)}
        self._seed = seed
        self.features = features

        directions = rng.normal(size=(10, attributes))  # fewer causes than attributes: attributes are correlated
        traits = {
            trait: rng.normal(size=10) @ directions
            for group in (_COATS, _PLACES, _BODIES, varieties)
            for trait in group
        }
        shifts = np.stack([sum(traits[trait] for trait in kind) for kind in chosen])
        self.attributes: Array = (1 / (1 + np.exp(-0.35 * shifts))).astype(np.float32)  # [classes, attributes]

        hidden = np.tanh((self.attributes - 0.5) @ rng.normal(size=(attributes, 48)) * 0.9)
        explained = hidden @ rng.normal(size=(48, features)) / np.sqrt(48)
        unexplained = rng.normal(size=(classes, features))
        self._means = 0.6 + 0.7 * explained + 0.3 * unexplained  # [classes, features]
        self._scatter = rng.normal(size=(24, features)) * 0.32  # the shared directions of the noise

    def name(self, class_id: str) -> str:
        return class_id.replace("-", " ")

    def attribute(self, class_id: str) -> Array:
        row: Array = self.attributes[self._index[class_id]]
        return row

    def draw(self, class_id: str, count: int, purpose: int) -> Array:
        """`count` features, [count, features] float32; the same ones for the same class and purpose."""
        number = self._index[class_id]
        rng = np.random.default_rng([self._seed, 1, number, purpose])
        noise = rng.normal(size=(count, len(self._scatter))) @ self._scatter
        noise += 0.6 * rng.normal(size=(count, self._means.shape[1]))
        rows: Array = np.maximum(self._means[number] + noise, 0).astype(np.float32)
        return rows
