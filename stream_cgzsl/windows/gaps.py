"""Records that expired before they were read: refuse with the numbers, or go on and note the gap in the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import Expired
from stream_cgzsl.schemas import LedgerRecord, Range
from stream_cgzsl.windows.offsets import Ends

_ROLES = ("attributes", "features")


@dataclass(frozen=True)
class Gap:
    """Per role and partition: how many offsets before the first one kept were never read."""

    lost: dict[str, dict[int, int]]

    @classmethod
    def find(cls, bus: Bus, topics: Topics, starts: Ends) -> Gap:
        lost: dict[str, dict[int, int]] = {}
        for role in _ROLES:
            for partition, begin in bus.begin_offsets(topics[role]).items():
                missing = begin - starts[role].get(partition, 0)
                if missing > 0:
                    lost.setdefault(role, {})[partition] = missing
        return cls(lost)

    def refuse(self, topics: Topics, starts: Ends) -> None:
        """Raises `Expired` when there is a gap."""
        parts = [
            f"{topics[role]}/{partition} [{starts[role].get(partition, 0)}, {starts[role].get(partition, 0) + missing})"
            for role, spans in self.lost.items()
            for partition, missing in spans.items()
        ]
        if parts:
            raise Expired(
                f"records expired before they were learned: {', '.join(parts)}. Restore them, or go on without them "
                "with: learn --accept-loss (the gap is noted in the ledger)"
            )

    def after(self, starts: Ends) -> Ends:
        """`starts`, moved to the first offsets kept, also of partitions that were added since."""
        moved = {role: dict(spans) for role, spans in starts.items()}
        for role, spans in self.lost.items():
            for partition, missing in spans.items():
                moved[role][partition] = moved[role].get(partition, 0) + missing
        return moved

    def note(self, ranges: dict[str, dict[int, Range]]) -> dict[str, dict[int, Range]]:
        """`ranges` with the number of lost offsets in them."""
        return {
            role: {p: span.model_copy(update={"lost": self.lost.get(role, {}).get(p, 0)}) for p, span in spans.items()}
            for role, spans in ranges.items()
        }


def expired_ranges(bus: Bus, topics: Topics, record: LedgerRecord) -> list[str]:
    """Which inputs of a committed window have expired since, such as `features/2 [10,25) expired`."""
    return [
        f"{role}/{partition} [{span.start},{min(span.end, begins[partition])}) expired"
        for role in _ROLES
        for begins in [bus.begin_offsets(topics[role])]
        for partition, span in record.ranges.get(role, {}).items()
        if span.start < min(span.end, begins.get(partition, 0))
    ]
