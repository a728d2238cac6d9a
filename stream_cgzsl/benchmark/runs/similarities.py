"""Which projections the features of a class are most similar to, window by window."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stream_cgzsl.report.document import Neighbours, Similar, SimilarityPanel
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.blocks import unit
from stream_cgzsl.serving.generation import Generation

TOP = 3


class Similarities:
    """Follows a few classes over a run's generations.

    `tests` are their test features, [rows, features]. The mean of a class's published features, less the published
    centre, is compared by cosine with the projection of every class known by then.
    """

    def __init__(self, tests: Mapping[str, Array]) -> None:
        self._tests = tests
        self._neighbours: dict[str, list[Neighbours]] = {class_id: [] for class_id in tests}
        self._learned_in: dict[str, int | None] = dict.fromkeys(tests)

    def add(self, generation: Generation) -> None:
        """Adds the next generation; skipped where it is not servable, or compares what an encoder makes of features."""
        if not generation.servable or generation.encoder is not None:
            return
        index = {class_id: place for place, class_id in enumerate(generation.class_ids)}
        projections = unit(generation.vectors)
        for class_id in (class_id for class_id in self._tests if class_id in index):
            mean = generation.published(self._tests[class_id]).mean(axis=0, keepdims=True)
            cosines = (unit(mean - generation.centre) @ projections.T)[0]
            top = tuple(
                Similar(
                    class_id=generation.class_ids[place],
                    similarity=round(float(cosines[place]), 6),
                    seen=bool(generation.seen[place]),
                )
                for place in np.argsort(-cosines, kind="stable")[:TOP].tolist()
            )
            self._neighbours[class_id].append(Neighbours(window=generation.number, top=top))
            if generation.seen[index[class_id]] and self._learned_in[class_id] is None:
                self._learned_in[class_id] = generation.number

    def panels(self) -> tuple[SimilarityPanel, ...]:
        return tuple(
            SimilarityPanel(class_id=class_id, learned_in=self._learned_in[class_id], windows=tuple(windows))
            for class_id, windows in self._neighbours.items()
            if windows
        )
