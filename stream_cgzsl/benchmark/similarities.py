"""How classes that are only described are told apart: what their features are most similar to, window by window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_cgzsl.generation import Generation
from stream_cgzsl.learners.features import transformed
from stream_cgzsl.report.document import Neighbours, Similar, SimilarityPanel

Array = npt.NDArray[Any]

TOP = 3


class Similarities:
    """Follows a few classes over a run's generations.

    `tests` are their test features, [rows, features]. The mean of a class's published features, less the published
    centre, is compared by cosine with the projection of every class known by then.
    """

    def __init__(self, tests: Mapping[str, Array]) -> None:
        self._tests = tests
        self._looks: dict[str, list[Neighbours]] = {class_id: [] for class_id in tests}
        self._learned_in: dict[str, int | None] = dict.fromkeys(tests)

    def look(self, generation: Generation) -> None:
        """The next generation. One that cannot tell classes apart yet is passed over."""
        if not generation.servable:
            return
        index = {class_id: place for place, class_id in enumerate(generation.class_ids)}
        known = [class_id for class_id in self._tests if class_id in index]
        if not known:
            return
        for class_id, cosines in zip(known, self._cosines(generation, known), strict=True):
            best = np.argsort(-cosines, kind="stable")[:TOP]
            top = tuple(
                Similar(
                    class_id=generation.class_ids[place],
                    similarity=round(float(cosines[place]), 6),
                    seen=bool(generation.seen[place]),
                )
                for place in best.tolist()
            )
            self._looks[class_id].append(Neighbours(window=generation.number, top=top))
            if generation.seen[index[class_id]] and self._learned_in[class_id] is None:
                self._learned_in[class_id] = generation.number

    def _cosines(self, generation: Generation, class_ids: list[str]) -> Array:
        """[class_ids, classes]"""
        means = np.stack([published(self._tests[class_id], generation).mean(axis=0) for class_id in class_ids])
        return _unit(means - generation.centre) @ _unit(generation.vectors).T

    def panels(self) -> tuple[SimilarityPanel, ...]:
        return tuple(
            SimilarityPanel(class_id=class_id, learned_in=self._learned_in[class_id], windows=tuple(looks))
            for class_id, looks in self._looks.items()
            if looks
        )


def published(rows: Array, generation: Generation) -> Array:
    """[rows, features] in the published feature space: transformed, and at length 1."""
    found: Array = transformed(rows, generation.transform).numpy()
    return found


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
