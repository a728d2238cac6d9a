"""Replay: the ledger's windows once more, from their ranges, and whether the same generations come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.environment import environment
from stream_cgzsl.errors import Expired
from stream_cgzsl.generation import Generation
from stream_cgzsl.lineage import Lineage
from stream_cgzsl.schemas import LedgerRecord
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.ledger import Incomplete, load_generation
from stream_cgzsl.windows.restore import Restorer

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

    Starting after the first window, and going on after one whose records have expired, takes a snapshot of the ledger.
    """
    restorer = Restorer(bus, topics, records, device, alive, rebuild=first == 1)
    last = len(records) - 1 if until is None else min(until, len(records) - 1)
    lineage: Lineage | None = restorer.at(first - 1) if first <= last else None
    missing = ""
    for record in records[first : last + 1]:
        if lineage is None:
            yield Replayed(record.number, record.kind, Verdict.NOT_VERIFIABLE, missing)
            lineage = _from_snapshot(bus, topics, records, record.number, device)
            continue
        try:
            gathered = None if record.kind == "rollback" else restorer.gather(lineage, record)
        except Expired as error:
            missing = str(error)
            yield Replayed(record.number, record.kind, Verdict.NOT_VERIFIABLE, missing)
            lineage = _from_snapshot(bus, topics, records, record.number, device)
            continue
        lineage, generation = restorer.step(lineage, record, gathered)
        yield _judge(bus, topics, record, gathered, generation, environment(device))


def _from_snapshot(bus: Bus, topics: Topics, records: list[LedgerRecord], number: int, device: str) -> Lineage | None:
    """The lineage after window `number` if the ledger has a snapshot of just that window."""
    if records[number].state is None:
        return None
    try:
        return Restorer(bus, topics, records, device).snapshot_of(records[number])
    except Incomplete:
        return None


def _judge(
    bus: Bus,
    topics: Topics,
    record: LedgerRecord,
    gathered: Gathered | None,
    generation: Generation,
    here: dict[str, object],
) -> Replayed:
    def told(verdict: Verdict, detail: str) -> Replayed:
        return Replayed(record.number, record.kind, verdict, detail, generation.digest)

    if gathered is not None and gathered.inputs != record.inputs:
        return told(
            Verdict.INPUTS_DIFFER, f"inputs {gathered.inputs[:12]}, the ledger has {(record.inputs or 'none')[:12]}"
        )
    if generation.digest == record.generation:
        return told(Verdict.IDENTICAL, generation.digest[:12])
    changed = [f"{k} {v} -> {here.get(k)}" for k, v in record.environment.items() if here.get(k) != v]
    if not changed:
        return told(
            Verdict.DIFFERENT,
            f"{generation.digest[:12]}, the ledger has {(record.generation or 'none')[:12]}; same environment",
        )
    try:
        original = load_generation(bus, topics, record)
    except Incomplete as reason:
        return told(Verdict.NOT_VERIFIABLE, f"another environment ({', '.join(changed)}), and {reason}")
    angle, bias = distance(original, generation)
    close = angle <= ANGLE and bias <= BIAS
    detail = f"turned at most {angle:.1e} rad, biases moved {bias:.1e}; another environment: {', '.join(changed)}"
    return told(Verdict.EQUIVALENT if close else Verdict.DIFFERENT, detail)


def distance(a: Generation, b: Generation) -> tuple[float, float]:
    """The largest angle between the projections of a class, and the largest move of a bias; infinite for other classes."""
    if a.class_ids != b.class_ids or (a.seen != b.seen).any() or a.servable != b.servable:
        return float("inf"), float("inf")
    if not a.class_ids or not a.servable:
        return 0.0, 0.0
    u, v = a.vectors.astype(np.float64), b.vectors.astype(np.float64)
    lengths = np.linalg.norm(u, axis=1), np.linalg.norm(v, axis=1)
    chord = np.linalg.norm(
        u / np.maximum(lengths[0], 1e-30)[:, None] - v / np.maximum(lengths[1], 1e-30)[:, None], axis=1
    )
    bias = np.abs(a.biases.astype(np.float64) - b.biases).max() / max(float(lengths[0].max()), 1e-30)
    return float(2 * np.arcsin(np.minimum(chord / 2, 1.0)).max()), float(bias)
