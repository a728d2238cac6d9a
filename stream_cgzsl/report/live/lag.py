"""Lag: what the learner, the scorers and the evaluator have not processed yet."""

from __future__ import annotations

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import Refused
from stream_cgzsl.schemas import LedgerRecord


def lag(bus: Bus, topics: Topics, newest: LedgerRecord | None, evaluated: int | None) -> dict[str, int | None]:
    """Waiting records by role; `evaluations` counts generations. None if there is no evaluator or no access.

    Offsets are counted, so on Kafka the control records of other transactions count too.
    """
    taken = {} if newest is None else newest.ranges
    waiting: dict[str, int | None] = {
        role: _behind(bus, topics[role], {number: span.end for number, span in taken.get(role, {}).items()})
        for role in ("attributes", "features")
    }
    waiting["samples"] = _unanswered(bus, topics)
    waiting["evaluations"] = None if evaluated is None or newest is None else max(0, newest.number - evaluated)
    return waiting


def _unanswered(bus: Bus, topics: Topics) -> int | None:
    try:
        taken = bus.committed(f"{topics.prefix}.scorer", topics["samples"])
    except Refused:  # without access to the scorers' group, the page still shows the rest
        return None
    return _behind(bus, topics["samples"], taken)


def _behind(bus: Bus, topic: str, taken: dict[int, int]) -> int:
    first = bus.begin_offsets(topic)
    ends = bus.end_offsets(topic)
    return sum(max(0, end - max(taken.get(number, 0), first[number])) for number, end in ends.items())
