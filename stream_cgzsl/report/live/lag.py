"""How much waits on the bus: what the learner, the scorers and the evaluator have not taken yet."""

from __future__ import annotations

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import Refused
from stream_cgzsl.schemas import LedgerRecord


def lag(bus: Bus, topics: Topics, newest: LedgerRecord | None, evaluated: int | None) -> dict[str, int | None]:
    """Records that wait, by role; `evaluations` counts generations. None: there is no evaluator, or one may not ask.

    Offsets are counted, so on Kafka the marks of other people's transactions count too.
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
    except Refused:  # the scorers' group is theirs: who may not look at it still sees the rest
        return None
    return _behind(bus, topics["samples"], taken)


def _behind(bus: Bus, topic: str, taken: dict[int, int]) -> int:
    first = bus.begin_offsets(topic)
    ends = bus.end_offsets(topic)
    return sum(max(0, end - max(taken.get(number, 0), first[number])) for number, end in ends.items())
