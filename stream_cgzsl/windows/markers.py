"""Control records: a boundary ends a task, a rollback makes an earlier generation the newest again."""

from __future__ import annotations

import logging
from dataclasses import replace

from stream_cgzsl.bus import Bus, Reader, Record, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import Boundary, InvalidEvent, Message, Range, Rollback, decode
from stream_cgzsl.windows.cuts import Cut, Stream
from stream_cgzsl.windows.dead_letters import dead_letter
from stream_cgzsl.windows.offsets import DATA_ROLES, Ends

log = logging.getLogger(__name__)


_GRACE_SECONDS = 60.0
"""How long a boundary may name records that are not visible yet: those of a transaction that is still open."""


class _BeyondEnd(InvalidEvent):
    """A cut beyond the end of its topic, as far as that can be read now."""


class Markers:
    """A control record closes the window at the cut it names, or at the ends of the topics when it is read.

    A cut beyond the end is waited for, and the records after it wait with it.
    """

    def __init__(self, bus: Bus, topics: Topics, start: int) -> None:
        self._bus = bus
        self._tp = TopicPartition(topics["control"], 0)
        self._reader: Reader = bus.reader({self._tp: start})
        self._start = start
        self._waiting: list[Record] = []
        self._dead: list[tuple[Message, str]] = []
        self._dead_end = start
        self._held_since: float | None = None  # when the first waiting record was found to be beyond the end
        self.next_number = 1  # of the open window; the planner keeps it up to date

    def wait(self, seconds: float) -> None:
        """Blocks until a control record comes, but no longer than `seconds`."""
        if not self._waiting or self._held_since is not None:
            self._waiting += self._reader.poll(seconds)

    def look(self, stream: Stream) -> Cut | None:
        self.wait(0.0)
        while self._waiting:
            record = self._waiting[0]
            try:
                event = decode("control", record.key, record.value, record.headers)
                if isinstance(event, Boundary):
                    return self._close(record, Cut("train", "marker", event.reason, self._resolve(event, stream)))
                assert isinstance(event, Rollback)
                if event.to >= self.next_number or event.to < 1:
                    raise InvalidEvent(
                        "unknown-generation",
                        f"a rollback to generation {event.to}",
                        f"1 to {self.next_number - 1}",
                        "See the generations there are with: stream-cgzsl check",
                    )
                still = {role: dict(stream.starts[role]) for role in DATA_ROLES}
                return self._close(record, Cut("rollback", "rollback", event.reason, still, to=event.to))
            except InvalidEvent as error:
                if isinstance(error, _BeyondEnd) and self._hold(stream.clock()):
                    return None
                self._next()
                log.warning("%s", error.at(record.topic, record.partition, record.offset))
                self._dead.append((dead_letter(record, error), error.reason))
                self._dead_end = record.offset + 1
        return None

    def _resolve(self, event: Boundary, stream: Stream) -> Ends:
        """The marker's own cut if it has one, else the ends now; partitions a cut does not name take no records."""
        ends = stream.all_ends()
        for role, cut in (event.cut or {}).items():
            if role not in ends:
                raise InvalidEvent(
                    "invalid-field", f"the cut names {role!r}", " or ".join(DATA_ROLES), "Use these roles."
                )
            starts = stream.starts[role]
            for partition, offset in cut.items():
                advice = "Flush the producers, then ask for end offsets, then send the boundary."
                expected = "offsets of acknowledged records"
                found = f"the cut ends {role}/{partition} at {offset}"
                if partition not in ends[role]:
                    raise InvalidEvent("cut-beyond-end", f"{found}, and there is no such partition", expected, advice)
                if offset > ends[role][partition]:
                    problem = f"{found}, the topic ends at {ends[role][partition]}"
                    raise _BeyondEnd("cut-beyond-end", problem, expected, advice)
            ends[role] = {p: max(starts.get(p, 0), cut.get(p, starts.get(p, 0))) for p in ends[role]}
        return ends

    def _hold(self, now: float) -> bool:
        """Whether the first waiting record may still come true."""
        self._held_since = now if self._held_since is None else self._held_since
        return now - self._held_since < _GRACE_SECONDS

    def _next(self) -> None:
        """The first waiting record is dealt with."""
        del self._waiting[0]
        self._held_since = None

    def _close(self, record: Record, cut: Cut) -> Cut:
        self._next()
        dead, control = self.take_dead(record.offset + 1, accepted=1)
        return replace(cut, dead=dead, control=control)

    def take_dead(self, end: int | None = None, accepted: int = 0) -> tuple[tuple[Message, ...], Range]:
        """The control records that go into the next window: up to `end`, or only the invalid ones read so far."""
        reasons = [slug for _, slug in self._dead]
        dead = tuple(message for message, _ in self._dead)
        counts = {slug: reasons.count(slug) for slug in sorted(set(reasons))}
        end = max(self._start, self._dead_end) if end is None else end
        control = Range(start=self._start, end=end, accepted=accepted, dead=counts)
        self._start, self._dead = end, []
        return dead, control

    def backlog(self, start: int) -> int:
        """How many control records from offset `start` on are in no window yet, not counting known invalid ones."""
        return max(0, self._bus.end_offsets(self._tp.topic)[0] - start - len(self._dead))

    def close(self) -> None:
        self._reader.close()
