"""A refresh: the frame made anew from the state, what is believed in it, and every class published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from stream_cgzsl.errors import TrainingFailed
from stream_cgzsl.learners.interface import Monitor
from stream_cgzsl.learners.kernel.belief import Belief
from stream_cgzsl.learners.kernel.blocks import in_chunks
from stream_cgzsl.learners.kernel.class_process import Measures, class_process, measured
from stream_cgzsl.learners.kernel.evidence_episodes import FEWEST, OFFSET, EvidenceEpisodes, Trained, train
from stream_cgzsl.learners.kernel.evidence_state import EvidenceState
from stream_cgzsl.learners.kernel.frame import Frame, Observations, chosen, framed
from stream_cgzsl.learners.numerics.randomness import generator
from stream_cgzsl.learners.statistics.shared_space import SharedSpace, decide_shared
from stream_cgzsl.learners.whitened.space import TINY
from stream_cgzsl.serving.generation import Generation

ASKED = 4096
"""Most classes that training draws its episodes from; of more, those whose ids have the smallest hashes."""


def refreshed(
    number: int, state: EvidenceState, most: int, weigh: bool, device: torch.device, monitor: Monitor
) -> tuple[Generation, Frame, Belief]:
    """With at most so many landmarks. A function of the state and of the number of the refresh, which is counted."""
    state.mark_refresh()
    shared = _shared(state, most)
    measures = measured(state, shared.shared, device)
    monitor.check()
    trained = _trained(number, state, measures, weigh, monitor)
    refresh = state.totals.refreshes
    calibration = {**shared.record(), "offset": round(trained.offset, 9), "refresh": refresh}
    frame = framed(state, measures, trained.weights, trained.offset, chosen(state, most), calibration)

    def observations() -> Iterator[Observations]:
        for places in in_chunks(state.places.with_examples()):
            monitor.check()
            yield frame.observed(state.classes(places, device))

    belief = Belief.of(observations(), len(frame.landmarks), frame.centre)
    return *_published(number, state, frame, belief, monitor), belief


def _shared(state: EvidenceState, most: int) -> SharedSpace:
    """Decided from the landmarks; where nothing has to be measured, from nothing."""
    space = state.space
    measured = space.attributes == space.features and space.shared is None
    return decide_shared(state.statistics(state.places.ids(chosen(state, most)) if measured else ()))


def _trained(number: int, state: EvidenceState, measures: Measures, weigh: bool, monitor: Monitor) -> Trained:
    if state.totals.taught < FEWEST:
        return Trained(torch.zeros(state.space.attributes), OFFSET)
    rng = generator(state.space.seed, state.totals.refreshes, "episodes")
    asked = sorted(state.places.ids(chosen(state, ASKED)))
    process = class_process(state, measures, state.places.of(asked))
    trained = train(EvidenceEpisodes(process, rng), rng, monitor, weigh)
    if not (bool(torch.isfinite(trained.weights).all()) and np.isfinite(trained.offset)):
        raise TrainingFailed(
            f"window {number}: training the attribute weights did not stay finite; nothing was learned"
        )
    return trained


def _published(
    number: int, state: EvidenceState, frame: Frame, belief: Belief, monitor: Monitor
) -> tuple[Generation, Frame]:
    """Every class; and the frame with the divisor that brings their vectors to a common scale."""
    class_ids = state.places.class_ids
    ordered = state.places.of(class_ids)
    row_of = np.empty(int(ordered.max()) + 1, np.int64)
    row_of[ordered] = np.arange(len(ordered))
    vectors = np.empty((len(ordered), state.space.features), np.float32)
    biases = np.empty(len(ordered), np.float64)
    squares = 0.0
    for places in in_chunks(state.places.all()):
        monitor.check()
        seen = frame.observed(state.classes(places, frame.centre.device))
        found, lowered = frame.published(*belief.posterior(seen))
        squares += float(found.square().sum())
        vectors[row_of[places]], biases[row_of[places]] = found.cpu().numpy(), lowered.cpu().numpy()
    scale = (squares / len(ordered)) ** 0.5
    scale = scale if scale >= TINY else 1.0
    vectors /= np.float32(scale)
    examples = state.places.examples(ordered)
    generation = Generation(
        number=number,
        class_ids=tuple(class_ids),
        seen=examples > 0,
        vectors=vectors,
        biases=(biases / scale).astype(np.float32),
        centre=frame.centre.cpu().numpy().astype(np.float32),
        transform=frame.transform,
        calibration=frame.calibration,
        examples=examples,
        incremental=True,
    )
    return generation, replace(frame, divisor=scale)
