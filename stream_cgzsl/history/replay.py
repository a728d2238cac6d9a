"""Replay: the ledger's windows again, from their ranges, and whether the same generations come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger, Expired, UsageError
from stream_cgzsl.evaluation.projection_drift import angles
from stream_cgzsl.history.restore import Restorer
from stream_cgzsl.history.stream_learner import StreamLearner
from stream_cgzsl.runtime.environment import environment
from stream_cgzsl.schemas import Array, LedgerRecord
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import load_generation
from stream_cgzsl.windows.gaps import expired_ranges
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.identity import refuse_changed_topics
from stream_cgzsl.windows.ledger import Incomplete
from stream_cgzsl.windows.recorded import Ledger

ANGLE = 2e-3
BIAS = 2e-3
"""Bounds of `equivalent`: the largest angle of a projection in radians, and the largest change of a bias relative to
the longest projection, or of the centre or the encoder."""


class Verdict(StrEnum):
    IDENTICAL = "identical"
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    INPUTS_DIFFER = "inputs differ"
    NOT_VERIFIABLE = "not verifiable"


EXIT_CODES = {
    Verdict.IDENTICAL: 0,
    Verdict.EQUIVALENT: 0,
    Verdict.DIFFERENT: 10,
    Verdict.INPUTS_DIFFER: 11,
    Verdict.NOT_VERIFIABLE: 12,
}


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """That of the worst verdict: a different result, then different inputs, then what cannot be verified."""
    return min((EXIT_CODES[verdict] for verdict in verdicts if EXIT_CODES[verdict]), default=0)


@dataclass(frozen=True)
class Replayed:
    """The verdict on window `number`, and why."""

    number: int
    kind: str
    verdict: Verdict
    detail: str
    digest: str | None = None


def verify(
    bus: Bus,
    topics: Topics,
    ledger: Ledger,
    device: str,
    first: int = 1,
    until: int | None = None,
    alive: Callable[[], None] = lambda: None,
) -> Iterator[Replayed]:
    """Windows `first` to `until`, one verdict each.

    A generation is a function of all windows up to its own: where one window's inputs differ, so do those of every
    generation after it. Starting after the first window, and continuing after one whose records have expired, needs a
    snapshot.
    """
    last = ledger.last.number if until is None else until
    if not 1 <= first <= last <= ledger.last.number:
        raise UsageError(f"{bus.url}: the ledger has windows 1 to {ledger.last.number}, not {first} to {last}")
    refuse_changed_topics(bus, topics, ledger)
    restorer = Restorer(bus, topics, ledger, device, alive, rebuild=first == 1, strict=False)
    verifier = _Verifier(restorer, environment(device))
    learner: StreamLearner | None = None
    try:
        learner = restorer.at(first - 1)
    except Expired as error:
        verifier.missing = str(error)
    restorer.expect_rollbacks(first, last)
    for record in ledger.records(first, last):
        alive()
        learner, replayed = verifier.window(learner, record)
        yield replayed
        if learner is None:
            learner = _from_snapshot(restorer, record)


class _Verifier:
    """Judges one window after the other. `missing` says why the last one could not be learned again."""

    def __init__(self, restorer: Restorer, here: dict[str, object]) -> None:
        self._restorer = restorer
        self._here = here
        self._changed: dict[int, int | None] = {0: None}  # window -> the one whose inputs differ in its past, if any
        self.missing = ""

    def window(self, learner: StreamLearner | None, record: LedgerRecord) -> tuple[StreamLearner | None, Replayed]:
        """The learner after the window, or None where its inputs or the learner before it are gone; and the verdict."""
        restorer = self._restorer
        gathered: Gathered | None = None
        if record.to is None and learner is None:
            return None, _not_verifiable(record, self.missing)
        try:
            if record.to is None and learner is not None:
                gathered = restorer.gather(learner, record)
            learner, outcome = restorer.apply(learner, record, gathered)
        except Expired as error:
            gone = expired_ranges(restorer.bus, restorer.topics, record)
            self.missing = ", ".join(gone) or str(error)
            return None, _not_verifiable(record, self.missing)
        inputs = None if gathered is None else gathered.inputs.result()
        before = record.number - 1 if record.to is None else record.to
        changed = self._changed.get(before)
        if changed is None and inputs is not None and inputs != record.inputs:
            changed = record.number
        self._changed[record.number] = changed
        return learner, self._judge(record, outcome.generation, changed, inputs)

    def _judge(self, record: LedgerRecord, generation: Generation, changed: int | None, inputs: str | None) -> Replayed:
        def judged(verdict: Verdict, detail: str) -> Replayed:
            return Replayed(record.number, record.kind, verdict, detail, generation.digest)

        short, wanted = generation.digest[:12], (record.generation or "none")[:12]
        if changed == record.number and inputs is not None:
            return judged(
                Verdict.INPUTS_DIFFER, f"inputs {inputs[:12]}, the ledger has {(record.inputs or 'none')[:12]}"
            )
        if generation.digest == record.generation:
            return judged(Verdict.IDENTICAL, short)
        if changed is not None:
            return judged(Verdict.INPUTS_DIFFER, f"{short}, the ledger has {wanted}: it follows from window {changed}")
        moved = [f"{k} {v} -> {self._here.get(k)}" for k, v in record.environment.items() if self._here.get(k) != v]
        if not moved:
            return judged(Verdict.DIFFERENT, f"{short}, the ledger has {wanted}; same environment")
        try:
            original = load_generation(self._restorer.bus, self._restorer.topics, record)
        except Incomplete as reason:
            return judged(Verdict.NOT_VERIFIABLE, f"another environment ({', '.join(moved)}), and {reason}")
        except BrokenLedger as reason:
            return judged(Verdict.DIFFERENT, f"{short}, the ledger has {wanted}; {reason}")
        angle, bias = distance(original, generation)
        close = angle <= ANGLE and bias <= BIAS
        detail = (
            f"turned by at most {angle:.1e} rad, biases changed by {bias:.1e}; another environment: {', '.join(moved)}"
        )
        return judged(Verdict.EQUIVALENT if close else Verdict.DIFFERENT, detail)


def _not_verifiable(record: LedgerRecord, missing: str) -> Replayed:
    return Replayed(record.number, record.kind, Verdict.NOT_VERIFIABLE, missing)


def _from_snapshot(restorer: Restorer, record: LedgerRecord) -> StreamLearner | None:
    """The learner after a window, if the ledger has a snapshot of exactly that window."""
    try:
        learner = restorer.from_snapshot(record)
    except Incomplete:
        return None
    restorer.keep(learner)
    return learner


def distance(a: Generation, b: Generation) -> tuple[float, float]:
    """The largest angle between projections of the same class, and the largest change of a bias, of the centre, or of a
    layer of the encoder, each relative to the largest of its numbers.

    Both are infinite where the classes differ, or how they are scored.
    """
    kinds = [
        (g.class_ids, g.seen.tolist(), g.servable, g.metric, g.transform, [x.weights.shape for x in g.encoder or ()])
        for g in (a, b)
    ]
    if kinds[0] != kinds[1]:
        return float("inf"), float("inf")
    if not a.class_ids or not a.servable:
        return 0.0, 0.0
    longest = np.linalg.norm(a.vectors.astype(np.float64), axis=1).max()
    changes = [_change(a.biases, b.biases, float(longest)), _change(a.centre, b.centre, 1.0)]
    for one, two in zip(a.encoder or (), b.encoder or (), strict=True):
        changes += [_change(x, y, float(np.abs(x).max(initial=0.0))) for x, y in zip(one[:2], two[:2], strict=True)]
    return float(angles(a.vectors, b.vectors).max()), max(changes)


def _change(a: Array, b: Array, scale: float) -> float:
    return float(np.abs(a.astype(np.float64) - b).max(initial=0.0)) / max(scale, 1e-30)
