"""Step 1 of a window: asking the policies, in turn, whether it closes now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import LedgerRecord, Range
from stream_cgzsl.windows.cuts import Count, Cut, Describe, EventTime, MaxAge, Policy, Stream
from stream_cgzsl.windows.markers import Markers
from stream_cgzsl.windows.offsets import ends_of


@dataclass(frozen=True)
class Policies:
    """Which policies close windows. Markers and `describe` always do; the others where they have a number."""

    quiet: float = 2.0
    count: int | None = None
    max_age: float | None = None
    event_time: float | None = None
    event_delay: float = 0.0
    event_idle: float = 10.0

    def start(self, until_ms: int | None) -> list[Policy]:
        """The active policies; `until_ms` is where the last event-time window ended."""
        started: list[Policy] = []
        if self.event_time is not None:
            started.append(EventTime(self.event_time, self.event_delay, self.event_idle, until_ms))
        if self.count is not None:
            started.append(Count(self.count))
        if self.max_age is not None:
            started.append(MaxAge(self.max_age))
        return [*started, Describe(self.quiet)]


class Planner:
    """Plans the windows after `last`, one at a time."""

    def __init__(
        self,
        bus: Bus,
        topics: Topics,
        policies: Policies,
        last: LedgerRecord,
        until_ms: int | None,
        clock: Callable[[], float],
    ) -> None:
        self._stream = Stream(bus, topics, clock)
        self._markers = Markers(bus, topics, last.ranges["control"][0].end)
        self._policies = policies.start(until_ms)

    def look(self, last: LedgerRecord) -> Cut | None:
        """The cut of the window after `last`, when it closes now. Blocks no longer than a few round trips."""
        self._stream.starts = ends_of(last)
        self._markers.next_number = last.number + 1
        cut = self._markers.look(self._stream)
        if cut is not None:
            return cut
        for policy in self._policies:
            cut = policy.look(self._stream)
            if cut is not None:
                dead, control = self._markers.take_dead()
                return replace(cut, dead=dead, control=control)
        return None

    def wait(self, seconds: float) -> None:
        """Blocks until a control record comes, but no longer than `seconds`."""
        self._markers.wait(seconds)

    def waiting(self, last: LedgerRecord) -> dict[str, int]:
        """Records per role that wait for the window after `last`. Blocks for a few round trips.

        Invalid control records do not count: they go into whatever window comes next.
        """
        counts = {role: self._stream.backlog(role, self._stream.ends(role)) for role in ("attributes", "features")}
        return {**counts, "control": self._markers.backlog(last.ranges["control"][0].end)}

    def close(self) -> None:
        self._markers.close()


def empty_cut(last: LedgerRecord, kind: str, policy: str, to: int | None = None) -> Cut:
    """A window after `last` that takes no records at all."""
    control = last.ranges["control"][0].end
    return Cut(kind, policy, policy, ends_of(last), control=Range(start=control, end=control), to=to)
