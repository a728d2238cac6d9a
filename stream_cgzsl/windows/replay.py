"""Replay: the ledger's windows once more, from their ranges, and whether the same generations come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.environment import environment
from stream_cgzsl.errors import BrokenLedger, Expired, UsageError
from stream_cgzsl.evaluation.movement import angles
from stream_cgzsl.generation import Generation
from stream_cgzsl.lineage import Lineage
from stream_cgzsl.schemas import LedgerRecord
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.ledger import Incomplete, load_generation
from stream_cgzsl.windows.restore import Restorer, expired_ranges

ANGLE = 2e-3
BIAS = 2e-3
"""Bounds of `equivalent`: no projection turned by more radians, no bias moved by more of the longest projection."""


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
    """That of the worst: a result that is wrong, then inputs that are, then what cannot be known."""
    return min((EXIT_CODES[verdict] for verdict in verdicts if EXIT_CODES[verdict]), default=0)


@dataclass(frozen=True)
class Replayed:
    """What became of window `number`: the verdict, and in words why."""

    number: int
    kind: str
    verdict: Verdict
    detail: str
    digest: str | None = None


def verify(
    bus: Bus,
    topics: Topics,
    records: list[LedgerRecord],
    device: str,
    first: int = 1,
    until: int | None = None,
    alive: Callable[[], None] = lambda: None,
) -> Iterator[Replayed]:
    """Windows `first` to `until`, one verdict each.

    A generation is a function of all windows up to its own: where one window's inputs differ, so do those of every
    generation that follows from it. Starting after the first window, and going on after one whose records have
    expired, takes a snapshot of the ledger.
    """
    last = len(records) - 1 if until is None else until
    if not 1 <= first <= last < len(records):
        raise UsageError(f"{bus.url}: the ledger has windows 1 to {len(records) - 1}, not {first} to {last}")
    restorer = Restorer(bus, topics, records, device, alive, rebuild=first == 1, strict=False)
    verifier = _Verifier(restorer, environment(device))
    lineage: Lineage | None = None
    try:
        lineage = restorer.at(first - 1)
    except Expired as error:
        verifier.missing = str(error)
    for record in records[first : last + 1]:
        alive()
        lineage, replayed = verifier.window(lineage, record)
        yield replayed
        if lineage is None:
            lineage = _from_snapshot(restorer, record)


class _Verifier:
    """Judges one window after the other. `missing` says why the last one could not be had."""

    def __init__(self, restorer: Restorer, here: dict[str, object]) -> None:
        self._restorer = restorer
        self._here = here
        self._changed: dict[int, int | None] = {0: None}  # window -> the one whose inputs differ in its past, if any
        self.missing = ""

    def window(self, lineage: Lineage | None, record: LedgerRecord) -> tuple[Lineage | None, Replayed]:
        """The lineage after the window, where it could be had from the one before it, and the verdict."""
        restorer = self._restorer
        gathered: Gathered | None = None
        try:
            if record.to is not None:
                lineage, generation = restorer.roll(record)
            elif lineage is not None:
                gathered = restorer.gather(lineage, record)
                lineage, generation = restorer.step(lineage, record, gathered)
            else:
                return None, _not_verifiable(record, self.missing)
        except Expired as error:
            gone = expired_ranges(restorer.bus, restorer.topics, record)
            self.missing = ", ".join(gone) or str(error)
            return None, _not_verifiable(record, self.missing)
        before = record.number - 1 if record.to is None else record.to
        changed = self._changed.get(before)
        if changed is None and gathered is not None and gathered.inputs != record.inputs:
            changed = record.number
        self._changed[record.number] = changed
        return lineage, self._judge(record, generation, changed, gathered)

    def _judge(
        self, record: LedgerRecord, generation: Generation, changed: int | None, gathered: Gathered | None
    ) -> Replayed:
        def told(verdict: Verdict, detail: str) -> Replayed:
            return Replayed(record.number, record.kind, verdict, detail, generation.digest)

        short, wanted = generation.digest[:12], (record.generation or "none")[:12]
        if changed == record.number and gathered is not None:
            return told(
                Verdict.INPUTS_DIFFER, f"inputs {gathered.inputs[:12]}, the ledger has {(record.inputs or 'none')[:12]}"
            )
        if generation.digest == record.generation:
            return told(Verdict.IDENTICAL, short)
        if changed is not None:
            return told(Verdict.INPUTS_DIFFER, f"{short}, the ledger has {wanted}: it follows from window {changed}")
        moved = [f"{k} {v} -> {self._here.get(k)}" for k, v in record.environment.items() if self._here.get(k) != v]
        if not moved:
            return told(Verdict.DIFFERENT, f"{short}, the ledger has {wanted}; same environment")
        try:
            original = load_generation(self._restorer.bus, self._restorer.topics, record)
        except Incomplete as reason:
            return told(Verdict.NOT_VERIFIABLE, f"another environment ({', '.join(moved)}), and {reason}")
        except BrokenLedger as reason:
            return told(Verdict.DIFFERENT, f"{short}, the ledger has {wanted}; {reason}")
        angle, bias = distance(original, generation)
        close = angle <= ANGLE and bias <= BIAS
        detail = f"turned at most {angle:.1e} rad, biases moved {bias:.1e}; another environment: {', '.join(moved)}"
        return told(Verdict.EQUIVALENT if close else Verdict.DIFFERENT, detail)


def _not_verifiable(record: LedgerRecord, missing: str) -> Replayed:
    return Replayed(record.number, record.kind, Verdict.NOT_VERIFIABLE, missing)


def _from_snapshot(restorer: Restorer, record: LedgerRecord) -> Lineage | None:
    """The lineage after a window if the ledger has a snapshot of just that window."""
    try:
        lineage = restorer.snapshot_of(record)
    except Incomplete:
        return None
    restorer.keep(lineage)
    return lineage


def distance(a: Generation, b: Generation) -> tuple[float, float]:
    """The largest angle between the projections of a class, and the largest move of a bias; infinite for other classes."""
    if a.class_ids != b.class_ids or (a.seen != b.seen).any() or a.servable != b.servable:
        return float("inf"), float("inf")
    if not a.class_ids or not a.servable:
        return 0.0, 0.0
    longest = np.linalg.norm(a.vectors.astype(np.float64), axis=1).max()
    bias = np.abs(a.biases.astype(np.float64) - b.biases).max() / max(float(longest), 1e-30)
    return float(angles(a.vectors, b.vectors).max()), float(bias)
