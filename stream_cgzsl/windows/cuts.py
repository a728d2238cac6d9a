"""When a window closes, and where. A policy never looks at features: it returns a cut, one end offset per partition.

Policies combine: they are asked in turn, and the first that closes the window wins. Replay runs no policy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from stream_cgzsl.bus import Bus, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import Message, Range
from stream_cgzsl.windows.offsets import DATA_ROLES, Ends, Offsets

_AHEAD_MS = 3_600_000


@dataclass(frozen=True)
class Cut:
    """Where the next window ends. `describe` and `rollback` cuts have no features in them.

    `policy` is what closed the window; `reason` is in the words of whoever asked for it, or the policy's name.
    """

    kind: str  # train, describe or rollback
    policy: str
    reason: str
    ends: Ends
    dead: tuple[Message, ...] = ()
    control: Range = field(default_factory=lambda: Range(start=0, end=0))
    to: int | None = None  # the generation a rollback goes back to
    until_ms: int | None = None  # the event time an event-time window reaches to

    def shortened(self) -> Cut:
        """What a window says that had to end before this cut: all that the cut brings about is left to the rest."""
        start = self.control.start
        nothing = Range(start=start, end=start)
        return replace(self, policy="dead-letters", dead=(), control=nothing, until_ms=None)


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

    def all_ends(self, features: Offsets | None = None) -> Ends:
        """Ends of all data, now; `features` where a policy has fixed that end already. Features come first."""
        fixed = self.ends("features") if features is None else features
        return {"features": fixed, "attributes": self.ends("attributes"), "holdout": self.ends("holdout")}

    def backlog(self, role: str, ends: Mapping[int, int]) -> int:
        """How many offsets lie between the open window's start and `ends`; 0 where it starts after them."""
        return sum(max(0, end - self.starts[role].get(p, 0)) for p, end in ends.items())


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
            "describe",
            {"attributes": ends, "features": dict(stream.starts["features"]), "holdout": stream.ends("holdout")},
        )


class Count:
    """Closes when `records` features wait; each partition contributes in proportion to its backlog."""

    def __init__(self, records: int) -> None:
        self._records = records

    def look(self, stream: Stream) -> Cut | None:
        starts, ends = stream.starts["features"], stream.ends("features")
        waiting = {p: end - starts.get(p, 0) for p, end in ends.items()}
        total = sum(waiting.values())
        if total < self._records:
            return None
        shares = {p: self._records * count // total for p, count in waiting.items()}
        left = self._records - sum(shares.values())
        remainder = {p: -(self._records * waiting[p] % total) for p in waiting}
        for partition in sorted(waiting, key=lambda p: (remainder[p], p))[:left]:
            shares[partition] += 1
        return Cut(
            "train", "count", "count", stream.all_ends({p: starts.get(p, 0) + share for p, share in shares.items()})
        )


class MaxAge:
    """Closes `seconds` after the first waiting feature was noticed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: Offsets = {}  # when the first one was noticed
        self._noticed = 0.0

    def look(self, stream: Stream) -> Cut | None:
        ends, now = stream.ends("features"), stream.clock()
        if not stream.backlog("features", self._ends):
            self._ends, self._noticed = ends, now
        if not stream.backlog("features", ends) or now - self._noticed < self._seconds:
            return None
        return Cut("train", "max-age", "max-age", stream.all_ends())


class EventTime:
    """Tumbling windows of `span` seconds of the records' own time, aligned to the epoch.

    A window that ends at time T closes once every partition has a record of T + `delay` or later, or has had no newer
    record for `idle` seconds: none at all, or none of a later time, so that a clock that stands still blocks nobody.
    Records older than T that arrive after the cut join the next window and are counted
    late. A record more than an hour ahead of `wall`, the time of day, counts as one of now, so that a producer with a
    wrong clock does not block the others.
    """

    def __init__(
        self, span: float, delay: float, idle: float, until_ms: int | None, wall: Callable[[], float] = time.time
    ) -> None:
        self._span_ms = max(1, round(span * 1000))
        self._delay_ms = round(delay * 1000)
        self._idle = idle
        self._until_ms = until_ms
        self._wall = wall
        self._ends: Offsets = {}
        self._moved: dict[int, float] = {}
        self._first: dict[int, tuple[int, int]] = {}  # partition -> the first waiting offset, and its time
        self._latest: dict[int, tuple[int, float]] = {}  # partition -> the latest time known of it, and since when

    def look(self, stream: Stream) -> Cut | None:
        ends, now, wall_ms = stream.ends("features"), stream.clock(), int(self._wall() * 1000)
        for partition, end in ends.items():
            if self._ends.get(partition) != end:
                self._moved[partition] = now
        self._ends = ends
        waiting = self._first_waiting_ms(stream, ends)
        if not waiting:
            return None
        ahead = {p for p, ms in waiting.items() if ms > wall_ms + _AHEAD_MS}
        first = min(wall_ms if p in ahead else ms for p, ms in waiting.items())
        until = first - first % self._span_ms + self._span_ms
        if self._until_ms is not None:
            until = max(until, self._until_ms + self._span_ms)
        topic, starts = stream.topics["features"], stream.starts["features"]
        passed, at = stream.bus.offsets_at(topic, until + self._delay_ms), stream.bus.offsets_at(topic, until)
        for partition in ahead:  # its clock cannot be trusted
            passed[partition] = None if wall_ms < until + self._delay_ms else ends[partition]
            at[partition] = None
        behind = [p for p in ends if passed.get(p) is None and now - self._moved[p] < self._idle]
        advancing = [p for p in behind if self._advances(stream, p, waiting.get(p, 0), now)]
        if advancing:
            return None
        cut = {p: _reached(at.get(p), starts.get(p, 0), end) for p, end in ends.items()}
        if not stream.backlog("features", cut):
            return None
        self._until_ms = until
        return Cut("train", "event-time", "event-time", stream.all_ends(cut), until_ms=until)

    def _advances(self, stream: Stream, partition: int, first_ms: int, now: float) -> bool:
        """Whether a partition has had records of a later time than before in the last `idle` seconds."""
        topic = stream.topics["features"]
        latest, since = self._latest.get(partition, (first_ms, now))
        later = stream.bus.offsets_at(topic, latest + 1).get(partition)
        if later is not None:
            with stream.bus.reader({TopicPartition(topic, partition): later}) as reader:
                for record in reader.poll(1.0, 1):
                    latest, since = max(latest + 1, record.timestamp_ms), now
        self._latest[partition] = latest, since
        return now - since < self._idle

    def _first_waiting_ms(self, stream: Stream, ends: Offsets) -> dict[int, int]:
        """The time of the first waiting record of each partition that has one."""
        topic, starts = stream.topics["features"], stream.starts["features"]
        begins = stream.bus.begin_offsets(topic)  # expired records are handled when the window is read
        times: dict[int, int] = {}
        for partition, end in ends.items():
            start = max(starts.get(partition, 0), begins.get(partition, 0))
            if start >= end:
                continue
            if self._first.get(partition, (-1, 0))[0] != start:
                with stream.bus.reader({TopicPartition(topic, partition): start}) as reader:
                    for record in reader.poll(1.0, 1):
                        self._first[partition] = start, record.timestamp_ms
            if self._first.get(partition, (-1, 0))[0] == start:
                times[partition] = self._first[partition][1]
        return times


def _reached(at: int | None, start: int, end: int) -> int:
    """Where a partition reaches the wanted time; its end where no record has, or where that was before this window."""
    return end if at is None or at < start else min(end, at)
