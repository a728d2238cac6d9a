"""An update: a window's classes change what is believed within a frame, and they alone are published."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch

from stream_cgzsl.learners.kernel.belief import FOLDED, Belief
from stream_cgzsl.learners.kernel.blocks import in_chunks
from stream_cgzsl.learners.kernel.evidence_state import Classes, EvidenceState
from stream_cgzsl.learners.kernel.frame import Frame
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.windows.window import Window


class Update:
    """Takes a window's retired and described classes into the state, and remembers what was known of those it touches.

    A class whose description or examples are gone takes its old observation back; one that has more of the same
    examples only makes its observation more precise.
    """

    def __init__(self, state: EvidenceState, window: Window, device: torch.device) -> None:
        self._number = window.number
        self._state = state
        self._device = device
        places = state.places
        retired = sorted({class_id for class_id in window.retired if class_id in places})
        described = sorted(window.described, key=lambda d: d.class_id)
        touched = {*retired, *(d.class_id for d in described), *window.features}
        self._known = sorted(class_id for class_id in touched if class_id in places)
        self._before = state.classes(places.of(self._known), device)
        for class_id in retired:
            state.retire(class_id)
        revised = [d.class_id for d in described if state.describe(d)]
        self._renewed = {*retired, *revised}  # their old observations do not hold any more
        self._changed = set(revised)
        self._withdrawn = tuple(c for c in retired if c not in places)

    def folded(self, frame: Frame, belief: Belief, taught: Iterable[str]) -> Belief:
        """What is believed after the window, whose examples of the classes `taught` are in the state by now."""
        self._changed.update(taught)
        rows = {c: row for row, c in enumerate(self._known) if self._before.counts[row] > 0}
        for part in _parts(sorted(rows.keys() & self._renewed), FOLDED):
            old = frame.observed(self._as_before([rows[c] for c in part]))
            belief = belief.folded(old.phi, -old.precision, -old.pull)
        places = self._state.places
        observed = [c for c in sorted(self._changed) if places.examples(places.of([c]))[0]]
        for part in _parts(observed, FOLDED):
            new = frame.observed(self._state.classes(places.of(part), self._device))
            precision, pull = new.precision, new.pull
            more = [at for at, c in enumerate(part) if c in rows and c not in self._renewed]
            if more:
                old = frame.observed(self._as_before([rows[part[at]] for at in more]))
                precision[more] -= old.precision
                pull[more] -= old.pull
            belief = belief.folded(new.phi, precision, pull)
        return belief

    def published(self, frame: Frame, belief: Belief) -> Delta:
        class_ids = sorted(self._changed)
        places = self._state.places.of(class_ids)
        vectors = np.empty((len(places), len(frame.centre)), np.float32)
        biases = np.empty(len(places), np.float32)
        done = 0
        for part in in_chunks(places):
            rows = slice(done, done := done + len(part))
            seen = frame.observed(self._state.classes(part, self._device))
            vectors[rows], biases[rows] = (x.cpu().numpy() for x in frame.published(*belief.posterior(seen)))
        examples = self._state.places.examples(places)
        return Delta(self._number, tuple(class_ids), examples > 0, vectors, biases, examples, self._withdrawn)

    def _as_before(self, rows: list[int]) -> Classes:
        return Classes(*(part[rows] for part in self._before))


def _parts(class_ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(class_ids), size):
        yield class_ids[start : start + size]
