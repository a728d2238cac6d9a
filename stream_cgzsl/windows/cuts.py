"""When a window closes, and where. A policy never looks at features: it returns a cut, one end offset a partition.

Configuration is the `Policy`; what it remembers between two looks is in the object `start` gives.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from stream_cgzsl.bus import Bus, Reader, Record, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import Boundary, InvalidEvent, Message, Range, decode
from stream_cgzsl.windows.gather import Ends, Offsets, dead_letter

log = logging.getLogger(__name__)

DATA_ROLES = ("features", "attributes", "holdout")
"""In the order their ends are asked for: a class described before its first feature is then never unknown."""


@dataclass(frozen=True)
class Cut:
    """Where the next window ends. A `describe` cut has no features in it."""

    kind: str  # train or describe
    reason: str
    ends: Ends
    dead: tuple[Message, ...] = ()
    control: Range | None = None


class Stream:
    """What a policy may ask: where the open window starts, where topics end now, and what time it is."""

    def __init__(self, bus: Bus, topics: Topics, clock: Callable[[], float]) -> None:
        self.bus = bus
        self.topics = topics
        self.clock = clock
        self.starts: Ends = {role: {} for role in DATA_ROLES}

    def ends(self, role: str) -> Offsets:
        """End offsets now, never before the open window's start."""
        starts = self.starts[role]
        return {p: max(end, starts.get(p, 0)) for p, end in self.bus.end_offsets(self.topics[role]).items()}

    def all_ends(self) -> Ends:
        return {role: self.ends(role) for role in DATA_ROLES}

    def backlog(self, role: str, ends: Mapping[int, int]) -> int:
        """How many offsets lie between the open window's start and `ends`."""
        return sum(end - self.starts[role].get(p, 0) for p, end in ends.items())


class Policy(Protocol):
    """Decides when a window closes."""

    def look(self, stream: Stream) -> Cut | None:
        """A cut when the window should close now. Blocks no longer than a round trip to the bus."""


class Describe:
    """A change of attributes alone closes a window without features, after `quiet` seconds without another change.

    A producer that never pauses is not waited for longer than five times that.
    """

    def __init__(self, quiet: float = 2.0) -> None:
        self._quiet = quiet
        self._ends: Offsets = {}
        self._changed = 0.0
        self._first = 0.0

    def look(self, stream: Stream) -> Cut | None:
        ends = stream.ends("attributes")
        now = stream.clock()
        if not stream.backlog("attributes", ends):
            self._ends = ends
            return None
        if ends != self._ends:
            if not stream.backlog("attributes", self._ends):
                self._first = now
            self._ends, self._changed = ends, now
        if now - self._changed < self._quiet and now - self._first < 5 * self._quiet:
            return None
        return Cut(
            "describe",
            "describe",
            {"attributes": ends, "features": dict(stream.starts["features"]), "holdout": stream.ends("holdout")},
        )


class Markers:
    """A control record closes the window at the cut it names, or at the ends of the topics when it is read."""

    def __init__(self, bus: Bus, topics: Topics, start: int) -> None:
        self._tp = TopicPartition(topics["control"], 0)
        self._reader: Reader = bus.reader({self._tp: start})
        self._start = start
        self._waiting: list[Record] = []
        self._dead: list[tuple[Message, str]] = []
        self._dead_end = start

    def wait(self, seconds: float) -> None:
        """Blocks until a control record comes, but no longer than `seconds`."""
        if not self._waiting:
            self._waiting = self._reader.poll(seconds)

    def look(self, stream: Stream) -> Cut | None:
        self.wait(0.0)
        while self._waiting:
            record = self._waiting.pop(0)
            try:
                event = decode("control", record.key, record.value, record.headers)
                if isinstance(event, Boundary):
                    return self._close(record, event.reason, self._resolve(event, stream))
                raise InvalidEvent(
                    "unsupported-control",
                    f"the record is a {event.type_name()}",
                    Boundary.type_name(),
                    "Send boundaries on this topic.",
                )
            except InvalidEvent as error:
                log.warning("%s", error.at(record.topic, record.partition, record.offset))
                self._dead.append((dead_letter(record, error), error.reason))
                self._dead_end = record.offset + 1
        return None

    def _resolve(self, event: Boundary, stream: Stream) -> Ends:
        """The marker's own cut where it has one; partitions it does not name stay where they are."""
        ends = stream.all_ends()
        for role, cut in (event.cut or {}).items():
            if role not in ends:
                raise InvalidEvent(
                    "invalid-field", f"the cut names {role!r}", " or ".join(DATA_ROLES), "Use these roles."
                )
            starts = stream.starts[role]
            for partition, offset in cut.items():
                if partition not in ends[role] or offset > ends[role][partition]:
                    raise InvalidEvent(
                        "cut-beyond-end",
                        f"the cut has {role}/{partition} end at {offset}, and it ends at {ends[role].get(partition)}",
                        "offsets of acknowledged records",
                        "Flush the producers, then ask for end offsets, then send the boundary.",
                    )
            ends[role] = {p: max(starts.get(p, 0), cut.get(p, starts.get(p, 0))) for p in ends[role]}
        return ends

    def _close(self, record: Record, reason: str, ends: Ends) -> Cut:
        dead, control = self.take_dead(record.offset + 1, accepted=1)
        return Cut("train", reason, ends, dead, control)

    def take_dead(self, end: int | None = None, accepted: int = 0) -> tuple[tuple[Message, ...], Range]:
        """The control records to put into the next window: up to `end`, else the bad ones read since the last one."""
        reasons = [slug for _, slug in self._dead]
        dead = tuple(message for message, _ in self._dead)
        counts = {slug: reasons.count(slug) for slug in sorted(set(reasons))}
        end = max(self._start, self._dead_end) if end is None else end
        control = Range(start=self._start, end=end, accepted=accepted, dead=counts)
        self._start, self._dead = end, []
        return dead, control

    def close(self) -> None:
        self._reader.close()
